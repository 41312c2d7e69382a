#include "artifact/print_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace vortex::artifact {
namespace {

std::string lineOf(std::string_view format, std::string_view kinds, std::vector<uint64_t> values) {
  return printText(format, kinds, values);
}

TEST(PrintText, EveryKindShowsItsValue) {
  EXPECT_EQ(
      lineOf("{} {} {} {} {}!", "fdiub",
             {std::bit_cast<uint64_t>(double(0.1f)), std::bit_cast<uint64_t>(0.1), ~uint64_t{0}, ~uint64_t{0}, 1}),
      "0.1 0.1 -1 18446744073709551615 true!");
  EXPECT_EQ(lineOf("{}{}", "bf", {0, std::bit_cast<uint64_t>(2.0)}), "false2.0");
}

TEST(PrintText, PlacesWithoutAValueStayAndValuesWithoutAPlaceAreLeftOut) {
  EXPECT_EQ(lineOf("a {} {}", "i", {7}), "a 7 {}");
  EXPECT_EQ(lineOf("a", "i", {7}), "a");
  EXPECT_EQ(lineOf("", "", {}), "");
}

TEST(PrintText, DoubledBracesAreBracesWhereThereAreValues) {
  EXPECT_EQ(lineOf("set {{}} = {}", "i", {7}), "set {} = 7");
  EXPECT_EQ(lineOf("{{{}}} }}{{ {{{{}}}}", "i", {7}), "{7} }{ {{}}");
  EXPECT_EQ(lineOf("{{}}", "", {}), "{{}}");
}

TEST(PrintText, KindsAreThoseOfTheFormat) {
  EXPECT_EQ(printKinds({"print:fd", "{}", "", 0, 0}), "fd");
  EXPECT_EQ(printKinds({"E0701", "no print", "", 0, 0}), "");
}

TEST(PrintText, AFaultShowsTheValuesThatBelongToItsMessageAndPlace) {
  Kernel kernel;
  kernel.faults = {{"E0704", "{} is not {}", "a.vx", 3, 5},
                   {"assert:ub", "{} is not {}", "a.vx", 4, 5},
                   {"print:ii", "{} is not {}", "a.vx", 3, 5},
                   {"assert:uf", "{} is not {}", "a.vx", 3, 5}};
  const uint64_t values[] = {7, std::bit_cast<uint64_t>(0.5), 9};
  EXPECT_EQ(faultText(kernel, kernel.faults[0], values), "7 is not 0.5");
  EXPECT_EQ(faultText(kernel, kernel.faults[0], std::span(values).first(1)), "7 is not {}");
  EXPECT_EQ(faultText(kernel, {"E0704", "{} is not {}", "b.vx", 3, 5}, values), "{} is not {}");
  EXPECT_TRUE(isOfFault(kernel.faults[3]));
  EXPECT_FALSE(isOfFault(kernel.faults[2]));
}

}  // namespace
}  // namespace vortex::artifact
