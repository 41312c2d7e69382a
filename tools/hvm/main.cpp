// The hvm command, without the compiler: it starts in a millisecond.
#include "hvm/command.h"

int main(int argc, char** argv) { return vortex::hvm::runCommand({argv + 1, argv + argc}); }
