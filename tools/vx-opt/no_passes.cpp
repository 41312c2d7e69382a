namespace vortex::passes {
void registerVxPasses();
void registerVxPasses() {}
}  // namespace vortex::passes
