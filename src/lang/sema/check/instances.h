// Functions with their generic arguments chosen, and the queue of their bodies.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lang/sema/check/names/scope.h"

namespace vortex::lang {

class Session;
struct BodyState;
struct Instance;

/// Where the argument of a tensor parameter without a written space lives; only `fn`s called in kernels have these.
struct Placement {
  bool isSet = false;
  Space space = Space::Global;
  SharedLayout layout = SharedLayout::RowMajor;
  bool isValue = false;
  auto operator<=>(const Placement&) const = default;
};

/// A function with its generic arguments chosen, in host or kernel code.
struct InstanceRequest {
  const syn::FunctionItem* item = nullptr;
  ItemScope* scope = nullptr;
  Type selfType = nullptr;
  GenericEnv generics = {};
  bool inKernel = false;
  /// Its generic parameters stand for themselves (definitions.cpp). Only its signature is made, and never stays.
  bool isDefinition = false;
  const syn::ImplItem* impl = nullptr;  ///< that it stands in
  bool isRepresentative = false;        ///< arguments chosen by `vortex check`: errors name them
  std::vector<Placement> placements = {};
  const Instance* parent = nullptr;  ///< who first asked for it
  SourceRange callSite;
};

struct Instance : InstanceRequest {
  explicit Instance(InstanceRequest request) : InstanceRequest(std::move(request)) {}
  /// For what its body calls.
  InstanceRequest request(const syn::FunctionItem* callee, ItemScope* calleeScope, SourceRange range) const;

  uint32_t depth = 0;  ///< of generic instances that asked for each other
  Function* function = nullptr;
  bool signatureOk = false;
  std::unique_ptr<BodyState> body;
};

class Instances {
public:
  explicit Instances(Session& session);
  ~Instances();

  /// Finds or makes the instance; declares its signature and queues its body. Null after an error (reported).
  Instance* instantiate(InstanceRequest request);
  void checkQueuedBodies();
  /// Runs `attempt` until it returns true; what an attempt that returned false reported inside `range` and instantiated is dropped.
  void retry(const std::function<bool()>& attempt, SourceRange range);
  /// Checks a function that nothing calls: as `first`, or as `second` when only that has no errors.
  void checkEither(const InstanceRequest& first, const InstanceRequest& second);
  bool wasChecked(const syn::FunctionItem* item) const { return broken_.count(item) + instantiated_.count(item) != 0; }
  /// Checks a generic function against its bounds, in the first of the two kinds of code that has no errors.
  void checkDefinition(InstanceRequest wanted, const std::vector<bool>& inKernel);

private:
  void dropFrom(size_t count);
  bool checkQuietly(const InstanceRequest& request);

  Session& session_;
  std::deque<std::unique_ptr<Instance>> instances_;
  std::map<std::string, Instance*> instancesByKey_;
  std::map<std::string, uint32_t> kernelNames_;
  std::map<const syn::FunctionItem*, uint32_t> ownInstances_;  ///< that a function asked for itself
  std::set<const syn::FunctionItem*> instantiated_;
  std::deque<Instance*> queue_;
  std::set<const syn::FunctionItem*> broken_;  ///< generic definitions with errors
};

}  // namespace vortex::lang
