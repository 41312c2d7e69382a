// Errors of the runtime and of the compiler as exceptions of Python.
#pragma once

#include "vortex/runtime.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

namespace vortex::python {

/// A MemoryError where there was none left, else the class of vortex._errors; `fault`, of the kernel that stopped, becomes its attribute.
[[noreturn]] inline void raiseAs(const char* kind, const Error& error, const std::optional<Fault>& fault) {
  namespace nb = nanobind;
  if (error.kind == ErrorKind::OutOfMemory) {
    PyErr_SetString(PyExc_MemoryError, error.message.c_str());
    throw nb::python_error();
  }
  const nb::module_ errors = nb::module_::import_("vortex._errors");
  nb::object raised = errors.attr(kind)(error.message);
  if (fault)
    raised.attr("fault") =
        errors.attr("Fault")(fault->kernel, fault->id, fault->message, fault->file, fault->line, fault->column);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  throw nb::python_error();
}

}  // namespace vortex::python
