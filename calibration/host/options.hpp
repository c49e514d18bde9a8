#pragma once

#include <limits>
#include <string>
#include <vector>

#include "calibration/host/step_model.hpp"

namespace orrery::calibration {

/// The options of orrery-gpu.
struct Options {
  std::string command;  ///< "measure", "step", "info", "list", "help", "version"
  std::string output = "calibration-record.json";
  std::string shapes;                ///< A work list; "": the default one.
  std::vector<std::string> besides;  ///< Records whose cases need not be measured again.
  std::vector<std::string> kinds;    ///< Empty: all.
  double budget_s = std::numeric_limits<double>::infinity();
  double noise = 0.005;
  double time_s = 1.0;
  bool resume = false;
  int device = 0;
  // Several processes, a GPU each: this one's rank, how many there are, and the file in which rank
  // 0 leaves NCCL's id for the others.
  int rank = 0;
  int ranks = 0;  ///< 0: one process has all GPUs.
  std::string bootstrap;
  StepModel step;
};

/// Errors (bad_input): an unknown word, a missing or impossible value, options that exclude each
/// other; with the nearest that would do.
Options parse_options(const std::vector<std::string>& arguments);

/// "30s", "5m", "1.5h" in seconds. `option` is named by errors.
double parse_duration(const std::string& text, const std::string& option);

/// "gemm,attention" as names of case kinds.
std::vector<std::string> parse_kinds(const std::string& text, const std::string& option);

std::string usage();

}  // namespace orrery::calibration
