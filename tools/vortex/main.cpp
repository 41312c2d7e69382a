// The vortex command: parses the command line and hands over to one command_*.cpp.
#include "base/text.h"
#include "hvm/command.h"
#include "pipeline/build_id.h"
#include "pipeline/compiler.h"
#include "tools/vortex/command_metal.h"
#include "tools/vortex/session.h"
#include "tools/vortex/settings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <sstream>
#include <tuple>
#include <unistd.h>

using namespace vortex::tools;

/// Options that only some files take.
struct FileOptions {
  std::vector<const CLI::Option*> ofMetal, ofVortex;
};

static void addFiles(CLI::App* command, Settings& settings, bool many) {
  auto* option = command->add_option("file", settings.files, many ? "source files" : "source file")->required();
  if (!many)
    option->expected(1);
}

static void addRaces(CLI::App* command, Settings& settings, FileOptions& files) {
  using vortex::lang::flow::RacePolicy;
  const auto races = [&](const char* name, RacePolicy policy, const char* help) {
    return command
        ->add_option_function<std::string>(
            name, [&settings, policy](const std::string&) { settings.races = policy; }, help)
        ->check(CLI::IsMember({"races"}));
  };
  CLI::Option* deny = races("--deny", RacePolicy::Deny, "races: an error where a race cannot be ruled out");
  CLI::Option* allow = races("--allow", RacePolicy::Allow, "races: do not look for races");
  deny->excludes(allow);
  files.ofVortex.insert(files.ofVortex.end(), {deny, allow});
}

static void addCompilerOptions(CLI::App* command, Settings& settings) {
  std::vector<std::string> stages;
  for (const vortex::pipeline::Stage& stage : vortex::pipeline::stages())
    stages.emplace_back(stage.name);
  stages.emplace_back("all");
  command->add_option("--cpu", settings.cpu, "processor to compile for (LLVM name; default: this machine)");
  command
      ->add_option("--dump-after", settings.dumpAfter,
                   "print the program after a stage: " + CLI::detail::join(stages, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(stages));
  command->add_flag("--time", settings.time, "print where compile time went");
  command->add_option("--repro", settings.reproducer, "write each kernel's module to this file before compiling it");
  command->add_flag("--no-cache", settings.noCache, "neither read nor write the on-disk kernel cache");
}

/// What is wrong with a count on the command line; nothing: it is one.
static std::string notACount(const std::string& text) {
  const bool isCount = !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string::npos;
  return isCount ? std::string() : "`" + text + "` is not a number from 0 to 10^19";
}

static void addRunOptions(CLI::App* command, Settings& settings) {
  command->add_option("--device", settings.device, "cpu, cuda:0, interpreter, null, … (vortex targets lists them)");
  CLI::Option* check =
      command
          ->add_flag(
              "--check{all}", settings.checks,
              "run kernels in the interpreter with bounds, race, initialisation and divergence checks; --check=fast: "
              "without those of races that the compiler has ruled out")
          ->check(CLI::IsMember({"all", "fast"}));
  command->add_option("--seed", settings.seed, "order of blocks and warps in the interpreter")->check(notACount);
  command
      ->add_option("--max-steps", settings.maxSteps,
                   "with --check: operations of one warp after which a kernel counts as endless; 0: no limit")
      ->check(notACount)
      ->needs(check);
  addCompilerOptions(command, settings);
}

/// What only files of Metal source take.
static void addMetalOptions(CLI::App* command, MetalOptions& metal, FileOptions& files) {
  constexpr const char* kGroup = "Metal source (FILE.metal)";
  auto text = [&](const char* name, std::string& into, const char* help) {
    files.ofMetal.push_back(command->add_option(name, into, help)->group(kGroup)->take_last());
  };
  auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    files.ofMetal.push_back(command->add_option(name, into, help)->group(kGroup)->allow_extra_args(false));
  };
  text("--launch", metal.json, "JSON file with these options as keys");
  text("--grid", metal.grid, "threads of the grid: X,Y,Z");
  text("--groups", metal.groups, "instead of --grid: threadgroups of the grid");
  text("--block", metal.block, "threads of a threadgroup: X,Y,Z");
  list("--buffer", metal.buffers, "INDEX=TYPE:VALUES, INDEX=TYPE[COUNT] or INDEX=FILE.npy");
  list("--threadgroup", metal.threadgroup, "INDEX=BYTES: length of threadgroup memory");
  list("--constant", metal.constants, "INDEX=VALUE: a function constant");
  list("--print", metal.prints, "INDEX of a buffer to print after the launch");
  list("--save", metal.saves, "INDEX=FILE.npy: write a buffer after the launch");
  list("-I", metal.includes, "folder of included files");
  list("-D", metal.definitions, "NAME or NAME=VALUE: a macro");
}

static CLI::Option* addDims(CLI::App* command, std::vector<std::string>& dims) {
  return command->add_option("--dim", dims, "fix a dimension: D=128")->check([](const std::string& text) {
    size_t equals = text.find('=');
    bool good = equals != std::string::npos && equals > 0 && equals + 1 < text.size() && text.size() - equals < 18 &&
                text.find_first_not_of("0123456789", equals + 1) == std::string::npos;
    return good ? std::string() : "`" + text + "` is not NAME=NUMBER";
  });
}

static std::string notAName(const std::string& text) { return text.empty() ? "a name is missing" : ""; }

/// What is given that no file of the command takes; empty: nothing.
static std::string notTaken(const Settings& settings, const FileOptions& options) {
  const auto metal = std::ranges::count_if(settings.files, isMetalFile);
  const bool takesMetal = metal != 0, takesVortex = metal != std::ssize(settings.files);
  for (const auto& [list, isTaken, what] :
       {std::tuple(&options.ofMetal, takesMetal, "Metal source"), {&options.ofVortex, takesVortex, "Vortex programs"}})
    for (const CLI::Option* option : *list)
      if (!isTaken && option->count() > 0)
        return vortex::base::concat(option->get_name(), " is an option of ", what, ", which `", settings.files[0],
                                    "` is not");
  if (!takesVortex && !settings.programArguments.empty())
    return vortex::base::concat("arguments behind `--` are for the main of Vortex programs, which `", settings.files[0],
                                "` is not");
  if (settings.cpu != "native" && settings.target.find("cpu") == std::string::npos)
    return vortex::base::concat("--cpu chooses the processor of code for the target cpu, and --target ",
                                settings.target, " makes none");
  return "";
}

/// What is no command, or no option of it; empty: nothing.
static std::string notKnown(CLI::App& app, const std::string& command, const std::vector<std::string>& words) {
  std::vector<std::string> commands, options;
  CLI::App* chosen = nullptr;
  for (CLI::App* one : app.get_subcommands([](CLI::App*) { return true; })) {
    commands.push_back(one->get_name());
    chosen = one->get_name() == command ? one : chosen;
  }
  if (!chosen)
    return vortex::base::concat("there is no command `", command, "`", didYouMean(command, commands), "; there are ",
                                vortex::base::join(commands, ", "));
  for (const CLI::App* each : {chosen, &app})
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames())
        options.push_back("--" + name);
  for (const std::string& word : words)
    if (const std::string name = word.substr(0, word.find('=')); word.size() > 2 && word.starts_with("--"))
      if (std::ranges::find(options, name) == options.end())
        return vortex::base::concat("`vortex ", command, "` has no option ", name, didYouMean(name, options),
                                    "; --help lists what there is");
  return "";
}

/// Lists and the like grow without a size known beforehand: then memory ends here, and the program as after any other error.
[[noreturn]] static void endWithoutMemory() {
  static constexpr char kText[] =
      "error[E0703]: out of memory: what the program keeps in lists, strings and tensors does not fit\n";
  if (::write(STDERR_FILENO, kText, sizeof kText - 1) < 0) {
    // nobody reads it
  }
  std::_Exit(1);
}

/// `vortex hvm …` and `vortex run FILE.hvm4 …` have the command line of hvm, which reads options such as -C3 that CLI11 cannot.
/// Its words without the command; nothing: it is another command.
static std::optional<std::vector<std::string>> hvmCommand(std::vector<std::string> words) {
  auto isCommand = [](const std::string& word) { return !word.starts_with('-'); };
  auto isProgram = [](const std::string& word) { return word.ends_with(".hvm4"); };
  const auto command = std::find_if(words.begin(), words.end(), isCommand), end = std::find(command, words.end(), "--");
  if (command == words.end() || !(*command == "hvm" || (*command == "run" && std::any_of(command, end, isProgram))))
    return std::nullopt;
  words.erase(command);
  return words;
}

int main(int argc, char** argv) {
  if (auto words = hvmCommand({argv + 1, argv + argc}))
    return vortex::hvm::runCommand(*words);
  std::set_new_handler(endWithoutMemory);
  CLI::App app{"Vortex: GPU kernels with an explicit, checked memory model"};
  app.require_subcommand(1);
  Settings settings;
  FileOptions files;
  std::vector<std::string> dims;
  std::string explained;
  app.add_flag("--json", settings.json, "diagnostics and reports as JSON")->configurable(false);
  app.set_version_flag("--version", "vortex " VORTEX_VERSION ", build " + vortex::pipeline::buildId(),
                       "print the version");
  app.fallthrough();

  // Everything after `--` belongs to the program.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator != arguments.end()) {
    settings.programArguments.assign(separator + 1, arguments.end());
    arguments.erase(separator, arguments.end());
  }

  auto* run = app.add_subcommand("run", "compile a file and run its main; arguments for it follow `--`");
  addFiles(run, settings, false);
  addRaces(run, settings, files);
  addRunOptions(run, settings);
  files.ofMetal.push_back(
      run->add_option("--kernel", settings.kernel, "Metal source: the kernel to launch")->check(notAName));
  addMetalOptions(run, settings.metal, files);
  auto* build = app.add_subcommand("build", "compile kernels ahead of time and report what they use");
  addFiles(build, settings, false);
  addRaces(build, settings, files);
  build->add_option("--target", settings.target,
                    "cpu, or a GPU: sm_90, sm_80, metal3.1; several with --header: cpu,sm_90");
  CLI::Option* header =
      build->add_flag("--header", settings.header, "write a C++ launcher per kernel, with its artifacts inside");
  CLI::Option* emit =
      build
          ->add_option(
              "--emit", settings.emit,
              "print instead of writing files: vx, ir (vx as scheduled), vxt (GPUs: per-thread code), llvm, asm")
          ->check(CLI::IsMember({"vx", "ir", "vxt", "llvm", "asm"}))
          ->excludes(header);
  files.ofVortex.push_back(header);
  files.ofVortex.push_back(
      build->add_option("--versions", settings.versions,
                        "launches to make code for: complete or all (every launch), or a list of usual (dense aligned "
                        "tensors) and M=4096 (of this size)"));
  files.ofVortex.push_back(
      build->add_flag("--memory", settings.memory, "also report where shared tensors lie and how many blocks fit")
          ->excludes(header)
          ->excludes(emit));
  build->add_option("-o,--output", settings.output, "folder for the files");
  build->add_option("--kernel", settings.kernel, "only this kernel")->check(notAName);
  files.ofVortex.push_back(addDims(build, dims));
  addCompilerOptions(build, settings);
  addMetalOptions(build, settings.metal, files);
  auto* check = app.add_subcommand("check", "all diagnostics, no code");
  addFiles(check, settings, true);
  addRaces(check, settings, files);
  check->add_option("--target", settings.target, "also check the limits of this target");
  check->add_flag("--time", settings.time, "print how long it took");
  files.ofVortex.push_back(
      check->add_option("--emit", settings.emit, "print flow: the graph of each kernel that the checks read")
          ->check(CLI::IsMember({"flow"})));
  addMetalOptions(check, settings.metal, files);
  auto* test = app.add_subcommand("test", "run the functions marked @test");
  addFiles(test, settings, true);
  addRaces(test, settings, files);
  test->add_option("--filter", settings.filter, "only tests whose name contains this");
  addRunOptions(test, settings);
  auto* bench = app.add_subcommand("bench", "time what is marked @bench");
  addFiles(bench, settings, false);
  addRaces(bench, settings, files);
  bench->add_option("--filter", settings.filter, "only names that contain this");
  bench->add_option("--samples", settings.samples, "timed runs")->check(CLI::Range(1, 10000));
  addDims(bench, dims);
  addRunOptions(bench, settings);
  auto* fmt = app.add_subcommand("fmt", "format files in place");
  addFiles(fmt, settings, true);
  fmt->add_flag("--check", settings.fmtCheck, "change nothing; list files that differ and exit with 1");
  auto* targets = app.add_subcommand("targets", "devices and targets of this machine");
  app.add_subcommand("hvm", "evaluate an HVM4 program: vortex hvm --help");
  auto* info = app.add_subcommand("info", "version, stages, folders");
  auto* explain = app.add_subcommand("explain", "what a diagnostic means: vortex explain E0312");
  explain->add_option("id", explained)->required();

  const bool wantsJson = std::ranges::find(arguments, "--json") != arguments.end();
  const auto command = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& word) { return !word.empty() && word[0] != '-'; });
  if (command != arguments.end())
    if (const std::string wrong = notKnown(app, *command, arguments); !wrong.empty()) {
      settings.json = wantsJson;
      failWith(settings, "E0810", wrong);
      return 2;
    }
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream out;
      app.exit(error, out, out);
      writeOutput(out.str());
      return 0;
    }
    settings.json = wantsJson;  // what stands behind the mistake was not read
    failWith(settings, "E0810", vortex::base::concat(error.what(), "; --help lists what there is"));
    return 2;
  }
  if (const std::string wrong = notTaken(settings, files); !wrong.empty())
    return failWith(settings, "E0810", wrong), 2;
  settings.check = !settings.checks.empty();
  for (const std::string& dim : dims) {
    size_t equals = dim.find('=');
    settings.dims.emplace_back(dim.substr(0, equals), std::stoll(dim.substr(equals + 1)));
  }
  if (*run)
    return isMetalFile(settings.files[0]) ? runMetal(settings) : commandRun(settings);
  if (*build)
    return isMetalFile(settings.files[0]) ? buildMetal(settings) : commandBuild(settings);
  if (*check)
    return commandCheck(settings);
  if (*test)
    return commandTest(settings);
  if (*bench)
    return commandBench(settings);
  if (*fmt)
    return commandFmt(settings);
  if (*targets)
    return commandTargets(settings);
  if (*info)
    return commandInfo(settings);
  return commandExplain(explained);
}
