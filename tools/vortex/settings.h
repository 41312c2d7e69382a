#pragma once

#include "lang/flow/race/policy.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vortex::tools {

/// How a kernel of Metal source is launched, as written: see metal_launch.cpp.
struct MetalOptions {
  std::string json, kernel, grid, groups, block;
  std::vector<std::string> buffers, threadgroup, constants, saves, prints, includes, definitions;
};

/// What the command line said, for every command.
struct Settings {
  std::vector<std::string> files;
  std::vector<std::string> programArguments;  ///< after `--`
  std::string device = "cpu";
  std::string target = "cpu";
  std::string cpu = "native";
  std::string emit;
  std::string output = ".";
  std::string kernel;
  std::string filter;
  std::string reproducer;
  MetalOptions metal;
  std::vector<std::string> dumpAfter;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::string versions = "complete";  ///< of `build`
  lang::flow::RacePolicy races = lang::flow::RacePolicy::Report;
  uint64_t seed = 0;
  uint64_t maxSteps = 100'000'000;  ///< a few seconds of one warp
  int samples = 15;
  bool memory = false;
  std::string checks;  ///< of --check: all, fast; empty: none
  bool check = false, json = false, header = false, time = false, noCache = false, fmtCheck = false;
};

int commandRun(const Settings& settings);
int commandBuild(const Settings& settings);
int commandCheck(const Settings& settings);
int commandTest(const Settings& settings);
int commandBench(const Settings& settings);
int commandFmt(const Settings& settings);
int commandTargets(const Settings& settings);
int commandInfo(const Settings& settings);
int commandExplain(std::string id);

}  // namespace vortex::tools
