#include "pipeline/back_end.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

namespace vortex::pipeline {
namespace {

/// Its kernels have a temporary of i8 for a parameter of u8.
class Mistaken : public BackEnd {
public:
  std::string name() const override { return "mistaken"; }
  passes::TensorSchedule tensorSchedule() const override { return {}; }

private:
  Result<artifact::Kernel> doCompile(mlir::ModuleOp, const Observer&, const Choose&) override {
    artifact::Kernel kernel;
    kernel.name = "k";
    artifact::Param a{.name = "a", .type = artifact::ScalarType::U8, .isTensor = true};
    artifact::Param copy{.name = "copy", .type = artifact::ScalarType::I8, .isTensor = true};
    copy.firstSlot = 1;
    copy.original = 0;
    kernel.params = {a};
    kernel.temporaries = {copy};
    kernel.slotCount = 2;
    return kernel;
  }
};

TEST(BackEnd, ArtifactsThatNoDeviceLoadsAreInternalErrors) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  Mistaken backEnd;
  EXPECT_DEATH((void)backEnd.compile(*module, {}), "kernel 'k' is not a valid artifact: 'copy' cannot stand for");
  EXPECT_DEATH((void)backEnd.plan(*module, {}), "kernel 'k' is not a valid artifact: 'copy' cannot stand for");
}

}  // namespace
}  // namespace vortex::pipeline
