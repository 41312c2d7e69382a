// Carries the precompiled header that every MLIR target reuses.
