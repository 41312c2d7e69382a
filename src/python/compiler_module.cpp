// The extension `_vortex_compiler`: programs. Importing it loads LLVM.
#include "python/entry_capsule.h"
#include "python/exceptions.h"
#include "python/threads.h"
#include "vortex/compiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace vortex::python {
namespace {

/// `kind`: the exception. `fault`: of the kernel that stopped, becomes the exception's attribute.
template <typename T>
T valueOf(Result<T> result, const char* kind = "BuildFailure", const std::optional<Fault>& fault = std::nullopt) {
  if (result)
    return *std::move(result);
  raiseAs(kind, result.error(), fault);
}

nb::dict describe(const SourceLabel& label) {
  nb::dict out;
  out["file"] = label.file;
  out["line"] = label.line;
  out["column"] = label.column;
  out["end_line"] = label.endLine;
  out["end_column"] = label.endColumn;
  out["message"] = label.message;
  out["is_primary"] = label.isPrimary;
  return out;
}

nb::list describe(const std::vector<Diagnostic>& diagnostics) {
  nb::list out;
  for (const Diagnostic& diagnostic : diagnostics) {
    nb::dict entry;
    nb::list labels;
    for (const SourceLabel& label : diagnostic.labels)
      labels.append(describe(label));
    entry["id"] = diagnostic.id;
    entry["severity"] = diagnostic.severity;
    entry["message"] = diagnostic.message;
    entry["labels"] = labels;
    entry["notes"] = diagnostic.notes;
    entry["helps"] = diagnostic.helps;
    entry["rendered"] = diagnostic.rendered;
    out.append(entry);
  }
  return out;
}

nb::list kernelsOf(const Program& program) {
  nb::list out;
  for (const KernelInfo& kernel : program.kernels()) {
    nb::dict entry;
    nb::list params;
    for (const KernelParam& param : kernel.params) {
      nb::dict described;
      described["name"] = param.name;
      described["type"] = param.type;
      described["is_tensor"] = param.isTensor;
      described["is_written"] = param.isWritten;
      described["dtype"] = name(param.dtype);
      described["rank"] = param.rank;
      params.append(described);
    }
    entry["name"] = kernel.name;
    entry["unique_name"] = kernel.uniqueName;
    entry["params"] = params;
    entry["results"] = kernel.results;
    entry["fixed_extents"] = kernel.fixedExtents;
    nb::list generics;
    for (const GenericArgument& argument : kernel.genericArguments)
      generics.append(nb::make_tuple(argument.value, argument.param, argument.dim));
    entry["generics"] = generics;
    entry["is_representative"] = kernel.isRepresentative;
    out.append(entry);
  }
  return out;
}

using Sizes = std::optional<std::array<int64_t, 3>>;
using Extents = std::vector<std::optional<std::vector<int64_t>>>;

BuildRequest requestOf(const std::string& target, Sizes grid, Sizes block, Extents extents, bool useCache) {
  return {target, grid.has_value(), block, std::move(extents), useCache};
}

/// (address or None, extents, strides, bits) per argument.
std::vector<HostArgument> hostArguments(nb::list given) {
  std::vector<HostArgument> arguments;
  for (const nb::handle entry : given) {
    const auto parts = nb::cast<nb::tuple>(entry);
    HostArgument argument;
    argument.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(parts[0]));
    argument.extents = nb::cast<std::vector<int64_t>>(parts[1]);
    argument.strides = nb::cast<std::vector<int64_t>>(parts[2]);
    argument.bits = nb::cast<uint64_t>(parts[3]);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

nb::list interpret(const Program& program, const std::string& kernel, nb::list given, const BuildRequest& request,
                   bool check, uint64_t seed, nb::callable print, Sizes grid) {
  const std::vector<HostArgument> arguments = hostArguments(std::move(given));
  std::optional<nb::python_error> failure;  // of the first print that raised
  std::optional<Fault> fault;
  const char* kind = "BuildFailure";
  InterpretOptions options{check,
                           seed,
                           [&](std::string_view text) {
                             locked([&] {
                               try {
                                 if (!failure)
                                   print(std::string(text));
                               } catch (nb::python_error& error) {
                                 failure.emplace(std::move(error));
                               }
                             });
                           },
                           grid,
                           [&](const Fault& found) { fault = found; },
                           [&] { kind = "RuntimeFailure"; }};
  const auto results = unlocked([&] { return program.interpret(kernel, arguments, request, options); });
  if (failure)
    throw nb::python_error(std::move(*failure));
  nb::list out;
  for (const HostResult& result : valueOf(results, kind, fault))
    out.append(nb::make_tuple(name(result.dtype), result.extents, nb::bytes(result.bytes.data(), result.bytes.size())));
  return out;
}

}  // namespace
}  // namespace vortex::python

NB_MODULE(_vortex_compiler, module) {
  using namespace vortex;
  using namespace vortex::python;
  nb::set_leak_warnings(false);
  bindThreads();
  nb::class_<BuildRequest>(module, "BuildRequest");
  module.def("request", &requestOf, nb::arg("target"), nb::arg("grid").none(), nb::arg("block").none(),
             nb::arg("extents"), nb::arg("use_cache"));
  nb::class_<Program>(module, "Program")
      .def_prop_ro("ok", &Program::ok)
      .def_prop_ro("report", &Program::report)
      .def("diagnostics", [](const Program& self) { return describe(self.diagnostics()); })
      .def("remarks", [](const Program& self) { return describe(self.remarks()); })
      .def("kernels", &kernelsOf)
      .def("dimensions", &Program::dimensions)
      .def("files",
           [](const Program& self) {
             nb::list out;
             for (const auto& [name, text] : self.files())
               out.append(nb::make_tuple(name, nb::bytes(text.data(), text.size())));
             return out;
           })
      .def("build",
           [](const Program& self, const std::string& kernel, const BuildRequest& request) {
             const auto bytes = valueOf(interruptible([=] { return self.build(kernel, request); }));
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("plan",
           [](const Program& self, const std::string& kernel, const BuildRequest& request) {
             KernelPlan plan = valueOf(interruptible([=] { return self.plan(kernel, request); }));
             return nb::make_tuple(nb::bytes(plan.artifact.data(), plan.artifact.size()),
                                   capsuleOf(std::move(plan.entries)), nb::bytes(plan.kept.data(), plan.kept.size()));
           })
      .def("text",
           [](const Program& self, const std::string& kernel, const std::string& stage, const BuildRequest& request) {
             return valueOf(interruptible([=] { return self.text(kernel, stage, request); }));
           })
      .def("interpret", &interpret, nb::arg("kernel"), nb::arg("arguments"), nb::arg("request"), nb::arg("check"),
           nb::arg("seed"), nb::arg("print"), nb::arg("grid") = nb::none());
  module.def("library_id", &Program::compilerId);
  module.def("entries_of", [](nb::bytes kept) {
    return capsuleOf(
        valueOf(Program::entriesOf({static_cast<const uint8_t*>(kept.data()), kept.size()}, /*useCache=*/false)));
  });
  module.def("from_trace", [](std::string trace, std::vector<std::pair<std::string, std::string>> files,
                              bool onlineSoftmax, bool warnsOfRaces, bool isChecked) {
    return interruptible([=] { return Program::fromTrace(trace, files, {onlineSoftmax, warnsOfRaces, isChecked}); });
  });
  module.def("compile",
             [](std::string name, std::string text, std::vector<std::pair<std::string, int64_t>> dims,
                std::vector<std::string> paths, bool isGridGiven,
                const std::vector<std::pair<std::string, std::vector<std::string>>>& wanted, bool isChecked) {
               CompileOptions options{std::move(dims), std::move(paths), isGridGiven, {}, isChecked};
               for (const auto& [kernel, arguments] : wanted)
                 options.instances.push_back({kernel, arguments});
               return interruptible([=] { return Program::compile(name, text, options); });
             });
}
