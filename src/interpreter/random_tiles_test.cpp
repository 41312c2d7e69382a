#include "interpreter/random_tiles.h"

namespace vortex::interpreter::random_tiles {
namespace {

TEST(RandomTiles, ProgramsAgreeWithLoops) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    RandomProgram random(seed, 8);
    std::string problem;
    std::vector<int32_t> values = random.run(problem);
    ASSERT_EQ(problem, "") << random.body;
    ASSERT_EQ(values, random.expected) << "seed " << seed << "\n" << random.body;
  }
}

}  // namespace
}  // namespace vortex::interpreter::random_tiles
