// Launchers as text: what a launch of a kernel does on the host, as a function of C or C++ with sizes, steps and temporaries. What memory is, and how
// a phase is run, is the language's.
#pragma once

#include "artifact/artifact.h"

#include <span>
#include <string>
#include <vector>

namespace vortex::tools {

/// "a.b<f32>" as an identifier of C and C++.
std::string cIdentifier(const std::string& name);
/// "uint16_t" of an f16.
const char* cType(artifact::ScalarType type);

class LauncherWriter {
public:
  virtual ~LauncherWriter() = default;

protected:
  explicit LauncherWriter(const artifact::Kernel& kernel);
  LauncherWriter(const LauncherWriter&) = delete;
  LauncherWriter& operator=(const LauncherWriter&) = delete;

  /// A tensor as a parameter of the launcher.
  virtual std::string tensorParameter(bool isWritten, bool isStructs, artifact::ScalarType type,
                                      const std::string& name) const = 0;
  /// What a function declares for its tensors before anything else.
  virtual void declareTensors() {}
  virtual void declareTemporaries() = 0;
  /// Puts `memory`, what tensorParameter() or declareTemporaries() declared, where kernels find the tensor.
  virtual void placeTensor(const artifact::Param& param, const std::string& memory) = 0;
  /// Leaves the launcher with -1 if the elements of a parameter or result, whose slots are set, do not lie in `memory`.
  virtual void checkTensor(const artifact::Param&, const std::string&) {}
  /// Puts a temporary where `original` is, whose slots it has got.
  virtual void placeOriginal(const artifact::Param&, const artifact::Param&) {}
  virtual void writeZeros(const std::string& memory, const std::string& bytes) = 0;
  /// Leaves the launcher with status -2 if there is none.
  virtual void writeAllocation(const std::string& memory, const std::string& bytes) = 0;
  virtual void writeExchange(const artifact::Param& one, const artifact::Param& other) = 0;
  /// Sets a let to what the phases so far have left in a temporary.
  virtual void writeRead(const artifact::Param& let, const artifact::Param& temporary) = 0;
  /// What of a temporary is null before it has memory: "" or a member.
  virtual std::string memoryMember() const { return ""; }
  /// Of a CPU its threads, of a GPU its cores. May declare what it names by declareWorkers().
  virtual std::string workers() = 0;
  virtual std::string declareWorkers() const { return ""; }
  virtual void writePhase(const artifact::Phase& phase) = 0;

  /// Comments about the layout of arrays of structs.
  void writeStructs(const std::vector<artifact::Param>& all);
  /// "const float *x, int64_t x_0, …"; "void" where there are none.
  std::string parameters(bool withResults) const;
  /// Functions for the extents of a result; `qualifiers`: "static inline".
  void writeExtents(size_t result, const std::string& qualifiers);
  /// The launcher between its braces, up to the label vx_done.
  void writeBody();
  /// Ends a function: declares what its sizes are made of and kept in.
  void endFunction();
  /// A size as C, after the statements that compute it.
  std::string size(size::Id id);
  std::string elements(const artifact::Param& param);
  static std::string commentText(std::string text);

  const artifact::Kernel& kernel_;
  const std::string name_;
  const bool takesGrid_;
  std::string indent_ = "  ";
  std::string out_;

private:
  static bool isLaterField(const artifact::Param& param);
  static std::span<const artifact::Param> fieldsFrom(const artifact::Param& first,
                                                     const std::vector<artifact::Param>& all);
  static std::string structsName(std::span<const artifact::Param> fields);
  static bool isWritten(std::span<const artifact::Param> fields);
  std::string nameOf(const artifact::Param& param) const;
  std::vector<std::string> extentsOf(const artifact::Param& param);
  void tensorSlots(const artifact::Param& param, const std::string& memory, const std::vector<std::string>& extents);
  void parameterSlots();
  void standFor(const artifact::Param& temporary, const artifact::Param& original);
  std::string condition(const artifact::Case& each);
  void writeSteps(const std::vector<artifact::Step>& steps);
  void writeStep(const artifact::Let& let);
  void writeStep(const artifact::Read& read);
  void writeStep(const artifact::Choose& choose);
  void writeStep(const artifact::Loop& loop);
  void writeStep(const artifact::Exchange& exchange);
  void writeStep(const artifact::Run& run);
  void allocate(size_t index);

  std::vector<bool> isComputed_;  ///< sizes, where the function being written has come to
  bool readsWorkers_ = false;     ///< in the function being written
  /// Temporaries have memory where the function has come to.
  enum class Storage : uint8_t { None, Maybe, Always };
  std::vector<Storage> temporaries_;
  size_t sizesAt_ = 0;  ///< where out_ declares them
};

}  // namespace vortex::tools
