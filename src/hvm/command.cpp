#include "hvm/command.h"

#include "base/memory.h"
#include "base/text.h"
#include "hvm/eval/evaluation.h"
#include "hvm/eval/print.h"
#include "hvm/frontier/engine.h"
#include "hvm/slices/transfer.h"
#include "vortex/runtime.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>

namespace vortex::hvm {
namespace {

constexpr const char* kHelp =
    R"(hvm FILE [options]: evaluates @main of an HVM4 program and prints its normal form

  -C, --collapse          print one ordinary term per line for each branch of a superposition
  -CN, --collapse=N       at most N of them
  -s, --stats             append interactions, heap and time
  -S, --silent            no results
  -T N, --threads N       threads (default 1, at most 256)
      --trace             print what each pass of the frontier engine does; this and the next six choose that engine
      --owner             it defers duplications to the owner of their cell (the default)
      --atomics           it lets whoever comes first take that cell
      --one-launch        a pass is one launch instead of two, with --owner
      --blocks N          number of its blocks (default 1); with --device alone those of %gnf
      --region-size N     words of a region of its heap, a power of two (default 4096)
      --write-net FILE    write what the frontier engine starts from, and stop
      --write-slices FILE write what %gnf starts from on a device, for src/hvm/slices/slices.vx
      --device D          cpu or cuda:0: what the frontier engine and %gnf run on; without it %gnf is left to the threads
      --memory SIZE       limit of heap and stacks, such as 500M or 8G, 256K to 256G (default: three quarters of the memory that the machine or its control group has)
      --fuel N            at most N interactions
      --seed N            order in which threads take work, and blocks begin
      --version, --help
)";

constexpr uint64_t kMostThreads = 256;

struct Settings {
  std::string file;
  std::optional<uint64_t> collapse;
  bool stats = false, silent = false;
  EvaluationOptions evaluation;
  bool usesFrontier = false, traces = false, hasDevice = false;
  std::optional<uint32_t> blocks;
  frontier::EngineOptions frontier;
  std::string netFile, slicesFile;
};

std::optional<uint64_t> parseNumber(std::string_view text) {
  uint64_t value = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9' || value > std::numeric_limits<uint64_t>::max() / 16)
      return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(digit - '0');
  }
  return text.empty() ? std::nullopt : std::optional(value);
}

std::optional<uint64_t> parseBytes(std::string text) {
  static constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  if (!text.empty())
    if (size_t unit = kUnits.find(text.back()); unit != std::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      text.pop_back();
    }
  std::optional<uint64_t> value = parseNumber(text);
  if (!value || *value == 0 || *value >> (63 - shift))
    return std::nullopt;
  return *value << shift;
}

/// Reads the command line.
class Arguments {
public:
  explicit Arguments(const std::vector<std::string>& words) : words_(words) {}

  /// An error's text, or nothing.
  std::string read(Settings& settings) {
    std::string error;
    for (; error.empty() && at_ < words_.size(); ++at_)
      error = readOne(settings, words_[at_]);
    if (error.empty() && settings.file.empty())
      error = "no file is given";
    if (error.empty() && !settings.slicesFile.empty() && !settings.hasDevice)
      error = "--write-slices needs --device, which %gnf starts on";
    settings.usesFrontier |= settings.blocks && !settings.hasDevice;
    return error;
  }

private:
  std::string readOne(Settings& settings, const std::string& word) {
    if (word == "-s" || word == "--stats")
      return settings.stats = true, "";
    if (word == "-S" || word == "--silent")
      return settings.silent = true, "";
    if (word == "--trace")
      return settings.usesFrontier = settings.traces = true, "";
    if (word == "--one-launch")
      return settings.usesFrontier = settings.frontier.oneLaunch = true, "";
    if (word == "--owner" || word == "--atomics")
      return settings.usesFrontier = true, settings.frontier.atomics = word == "--atomics", "";
    if (word == "--collapse" || word == "-C")
      return settings.collapse = std::numeric_limits<uint64_t>::max(), "";
    if (word.starts_with("--collapse=") || word.starts_with("-C"))
      return numberInto(settings.collapse, word, word.substr(word.starts_with("-C") ? 2 : 11));
    if (word.starts_with("-T") && word.size() > 2)
      return threadsFrom(settings, word.substr(2));
    static constexpr std::string_view kWithValue[] = {"-T",          "--threads",     "--device", "--memory",
                                                      "--fuel",      "--seed",        "--blocks", "--region-size",
                                                      "--write-net", "--write-slices"};
    for (std::string_view option : kWithValue)
      if (word == option || word.starts_with(std::string(option) + "="))
        return readValue(settings, option, word);
    if (word.size() > 1 && word[0] == '-')
      return base::concat("unknown option ", word);
    if (!settings.file.empty())
      return base::concat("more than one file: ", settings.file, ", ", word);
    return settings.file = word, "";
  }

  std::string readValue(Settings& settings, std::string_view option, const std::string& word) {
    std::string value;
    if (word.size() > option.size())
      value = word.substr(option.size() + 1);
    else if (at_ + 1 < words_.size())
      value = words_[++at_];
    else
      return base::concat(option, " needs a value");
    if (option == "-T" || option == "--threads")
      return threadsFrom(settings, value);
    if (option == "--device")
      return settings.hasDevice = true, settings.frontier.device = value,
             value.empty() ? "--device needs a name such as cpu or cuda:0" : "";
    if (option == "--write-slices")
      return settings.slicesFile = value, "";
    if (option == "--write-net")
      return settings.usesFrontier = true, settings.netFile = value, "";
    if (option == "--memory") {
      std::optional<uint64_t> bytes = parseBytes(value);
      settings.evaluation.memoryBytes = bytes.value_or(0);
      if (!bytes)
        return base::concat("--memory ", value, ": not a size such as 500M or 8G");
      if (*bytes < Heap::kLeastBytes || *bytes > Heap::kMostBytes)
        return base::concat("--memory ", value, ": the limit is between ", Heap::kLeastBytes >> 10, "K and ",
                            Heap::kMostBytes >> 30, "G");
      return "";
    }
    std::optional<uint64_t> count = parseNumber(value);
    if (option == "--blocks" || option == "--region-size")
      return shardingFrom(settings, option, value, count.value_or(0));
    (option == "--fuel" ? settings.evaluation.fuel : settings.evaluation.seed) = count.value_or(0);
    return count ? "" : base::concat(option, " ", value, ": not a number");
  }

  static std::string shardingFrom(Settings& settings, std::string_view option, const std::string& value,
                                  uint64_t count) {
    settings.usesFrontier |= option != "--blocks";
    frontier::Sharding& sharding = settings.frontier.sharding;
    if (option == "--blocks")
      settings.blocks = sharding.blocks = static_cast<uint32_t>(count);
    else
      sharding.shift = static_cast<uint32_t>(std::countr_zero(count));
    if (option == "--blocks" ? count < 1 || count > 4096 : !std::has_single_bit(count) || count < 8 || count > 1 << 20)
      return base::concat(option, " ", value,
                          option == "--blocks" ? ": not a number from 1 to 4096"
                                               : ": not a power of two from 8 to 1048576");
    return "";
  }

  static std::string numberInto(std::optional<uint64_t>& place, const std::string& word, std::string_view digits) {
    place = parseNumber(digits);
    return place ? "" : base::concat(word, ": not a number of lines");
  }

  static std::string threadsFrom(Settings& settings, const std::string& value) {
    std::optional<uint64_t> count = parseNumber(value);
    if (!count || *count < 1 || *count > kMostThreads)
      return base::concat("--threads ", value, ": not a number from 1 to ", kMostThreads);
    settings.evaluation.threads = static_cast<unsigned>(*count);
    return "";
  }

  const std::vector<std::string>& words_;
  size_t at_ = 0;
};

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fwrite((message + '\n').data(), 1, message.size() + 1, stderr);
  return 1;
}

/// Three quarters of what there is. Address space is reserved for more: the heap has room beyond its limit, each thread a stack half as large again.
uint64_t defaultMemory(unsigned threads) {
  const uint64_t fixed = sizeof(Term) * (Heap::kReserveWords + threads * (uint64_t(1) << 24));
  const uint64_t space = base::addressSpace(), reservable = (space - std::min(space, fixed)) / (4 + 2 * threads);
  return std::clamp(std::min(base::physicalMemory() / 4 * 3, reservable), Heap::kLeastBytes, Heap::kMostBytes);
}

void printStatistics(const Settings& settings, const std::vector<uint64_t>& interactions, uint64_t heapWords,
                     double seconds) {
  if (!settings.stats && !settings.silent)
    return;
  const uint64_t count = std::accumulate(interactions.begin(), interactions.end(), uint64_t(0));
  std::printf("- Itrs: %llu interactions\n", static_cast<unsigned long long>(count));
  if (!settings.stats)
    return;
  for (size_t i = 0; interactions.size() > 1 && i < interactions.size(); ++i)
    std::printf("- Itrs[%zu]: %llu interactions\n", i, static_cast<unsigned long long>(interactions[i]));
  std::printf("- Heap: %llu nodes\n", static_cast<unsigned long long>(heapWords));
  std::printf("- Time: %.3f seconds\n", seconds);
  std::printf("- Perf: %.2f M interactions/s\n", seconds > 0 ? static_cast<double>(count) / seconds / 1e6 : 0.0);
}

int finish() {
  std::fflush(stdout);
  return std::ferror(stdout) ? fail("Error: cannot write the results") : 0;
}

/// The exit status, or nothing if the evaluator has to reduce the program.
std::optional<int> runFrontier(const Settings& settings, const Program& program, const Code& code, uint32_t main) {
  auto begin = std::chrono::steady_clock::now();
  frontier::EngineOptions options = settings.frontier;
  options.memoryBytes = settings.evaluation.memoryBytes;
  options.fuel = settings.evaluation.fuel;
  options.seed = settings.evaluation.seed;
  options.names = &program;
  if (settings.traces)
    options.trace = [](const std::string& line) { std::puts(line.c_str()); };
  Result<frontier::Net> net = frontier::buildNet(program, main, options.sharding);
  if (!net)
    return fail("Error: " + net.error().message);
  if (!settings.netFile.empty()) {
    Result<void> written = frontier::writeNet(*net, options.sharding, settings.netFile);
    return written ? 0 : fail("Error: " + written.error().message);
  }
  Result<frontier::NormalForm> normal = frontier::normalize(*net, options);
  if (!normal)
    return fail(normal.error().message);
  if (!normal->isComplete)
    return std::nullopt;
  if (!settings.silent)
    std::puts(printTerm(normal->heap.data(), code, normal->heap[0], Naming::ByAppearance).c_str());
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  printStatistics(settings, {normal->interactions}, normal->words, elapsed.count());
  return finish();
}

/// Fewer tasks than this keep a device less busy than the evaluator keeps one core.
constexpr uint32_t kCpuWidth = 8, kGpuWidth = 256;
constexpr uint32_t kCpuBlocks = 4, kGpuBlocks = 1056;

/// Opening a GPU takes longer than many programs do.
bool isOpenedLate(const Settings& settings) {
  static constexpr std::string_view kGpu = "cuda:";
  const std::string_view name = settings.frontier.device;
  return settings.hasDevice && !settings.usesFrontier &&
         (name == "cuda" || (name.starts_with(kGpu) && parseNumber(name.substr(kGpu.size())).has_value()));
}

/// What reduces a term of %gnf.
slices::SliceOptions slicesFor(const Settings& settings, uint64_t spent) {
  slices::SliceOptions options;
  options.device = settings.frontier.device;
  options.memoryBytes = settings.evaluation.memoryBytes;
  options.fuel = settings.evaluation.fuel - std::min(spent, settings.evaluation.fuel);
  options.seed = settings.evaluation.seed;
  const bool isCpu = options.device == "cpu";
  options.file = settings.slicesFile;
  options.blocks = settings.blocks.value_or(isCpu ? kCpuBlocks : kGpuBlocks);
  options.leastWidth = settings.blocks ? 0 : isCpu ? kCpuWidth : kGpuWidth;
  return options;
}

void printReport(const std::string& device, uint64_t interactions, const slices::Report& report) {
  const double count = static_cast<double>(interactions);
  std::printf("- Itrs[%s]: %llu interactions\n", device.c_str(), static_cast<unsigned long long>(interactions));
  std::printf("- Time[%s]: %.3f open, %.3f load, %.3f fill, %.3f reduce, %.3f fetch\n", device.c_str(), report.open,
              report.load, report.fill, report.reduce, report.fetch);
  std::printf("- Perf[%s]: %.2f M interactions/s in %llu slices, %llu collections\n", device.c_str(),
              report.reduce > 0 ? count / report.reduce / 1e6 : 0.0, static_cast<unsigned long long>(report.slices),
              static_cast<unsigned long long>(report.collections));
}

int run(const Settings& settings, const Program& program) {
  auto main = program.definitionIndex.find("main");
  if (main == program.definitionIndex.end() || program.definitions[main->second].root == 0)
    return fail("Error: @main not defined");
  auto begin = std::chrono::steady_clock::now();
  Result<Code> code = compile(program);
  if (!code)
    return fail(code.error().message);
  if (settings.usesFrontier)
    if (std::optional<int> status = runFrontier(settings, program, *code, main->second))
      return *status;
  EvaluationOptions options = settings.evaluation;
  slices::Report report, cpuReport;
  std::optional<slices::Session> session, cpuSession;
  if (settings.hasDevice)
    options.offload = [&](Machine& machine, Term& term, bool forks) {
      slices::SliceOptions sliceOptions = slicesFor(settings, machine.interactions());
      sliceOptions.forks = forks;
      sliceOptions.report = &report, sliceOptions.session = &session;
      if (isOpenedLate(settings) && sliceOptions.leastWidth > 0 && settings.slicesFile.empty())
        sliceOptions.cpuSession = &cpuSession, sliceOptions.cpuReport = &cpuReport;
      return slices::reduceOnDevice(sliceOptions, machine, term);
    };
  auto evaluation = Evaluation::create(*code, options);
  if (!evaluation)
    return fail(evaluation.error().message);
  Evaluation& run = **evaluation;
  Result<void> done;
  auto print = [&](Term term, Naming naming) {
    if (settings.silent)
      return;
    std::string line = printTerm(run.heap().words(), *code, term, naming);
    if (settings.stats && settings.collapse)
      line += base::concat(" \x1b[2m#", run.interactions(), "\x1b[0m");
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  };
  if (settings.collapse) {
    done = run.collapseMain(main->second, *settings.collapse, [&](Term term) { print(term, Naming::ByDepth); });
  } else {
    Result<Term> normal = run.normalizeMain(main->second);
    if (normal)
      print(*normal, Naming::ByAppearance);
    else
      done = normal.takeError();
  }
  if (!done)
    return fail(done.error().message);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  printStatistics(settings, run.interactionsByThread(), run.heap().highWater(), elapsed.count());
  if (settings.stats && settings.usesFrontier)
    std::puts("- The frontier engine left the program to the evaluator");
  if (settings.stats && run.offloadedInteractions() > 0)
    printReport(session || !cpuSession ? settings.frontier.device : "cpu", run.offloadedInteractions(),
                session || !cpuSession ? report : cpuReport);
  return finish();
}

}  // namespace

int runCommand(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word == "--help" || word == "-h")
      return std::fputs(kHelp, stdout), finish();
    if (word == "--version")
      return std::puts("hvm (Vortex) " VORTEX_VERSION), finish();
  }
  Settings settings;
  settings.evaluation.memoryBytes = 0;
  std::string error = Arguments(arguments).read(settings);
  if (!error.empty())
    return fail(base::concat("Error: ", error, "; hvm --help lists the options"));
  if (settings.evaluation.memoryBytes == 0)
    settings.evaluation.memoryBytes = defaultMemory(settings.evaluation.threads);
  Result<Program> program = parseFile(settings.file);
  if (!program)
    return fail(program.error().message);
  const std::string& device = settings.frontier.device;
  if (settings.frontier.atomics && device.starts_with("metal"))
    return fail(base::concat("Error: --atomics: ", device, " has no exchange of 64-bit words; --owner needs none"));
  if (settings.frontier.atomics && settings.frontier.oneLaunch)
    return fail("Error: --one-launch is for --owner; --atomics takes two launches for a pass");
  if (settings.usesFrontier && settings.collapse)
    return fail("Error: the frontier engine computes normal forms, not -C");
  if (settings.hasDevice && !isOpenedLate(settings))
    if (Result<Device> opened = Runtime().open(device); !opened)
      return fail("Error: " + opened.error().message);
  return run(settings, *program);
}

}  // namespace vortex::hvm
