namespace vortex::passes {
void registerVxPasses();
void registerVxPasses() {}
}  // namespace vortex::passes

namespace vortex::target::gpu::hopper {
void registerHopperPasses();
void registerHopperPasses() {}
}  // namespace vortex::target::gpu::hopper
