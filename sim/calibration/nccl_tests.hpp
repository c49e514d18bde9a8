#pragma once

#include <string>
#include <vector>

#include "sim/calibration/curve.hpp"
#include "sim/core/error.hpp"

namespace orrery {

/// The output of one run of an nccl-tests program, uninterpreted.
struct NcclTestsRun {
  struct Device {
    int rank = 0;
    int group = 0;
    std::string host;
    int device = 0;
    std::string gpu;
  };
  struct Row {
    Place place;
    double bytes = 0.0;
    double time_us = 0.0;
    double algorithm_gb_s = 0.0;  ///< 0: not in the log.
    double bus_gb_s = 0.0;
    std::string type;
    bool in_place = false;
  };

  Place place;          ///< Start of the run.
  std::string program;  ///< "all_reduce_perf"; "": not in the log.
  std::string nccl;     ///< "2.28.3"; "": not in the log.
  bool is_version_1 = false;
  bool is_complete = false;  ///< The summary was found.
  bool has_table = false;    ///< The header was found.
  std::vector<Device> devices;
  std::vector<Row> rows;
};

/// The runs in a text log; at least one, each with a row.
std::vector<NcclTestsRun> parse_nccl_tests_text(const std::string& text, const std::string& file);
/// The run in a file written by -J.
NcclTestsRun parse_nccl_tests_json(const std::string& text, const std::string& file);

/// NCCL's version code as text: 22803 is "2.28.3". Up to 2.8 the code had one digit less: 2708 is
/// 2.7.8 (nccl.h.in, NCCL_VERSION). "" for an invalid code.
std::string nccl_version_text(const std::string& code);

/// Refuses wrong results: a faulty collective has another time.
void refuse_wrong_results(const Place& place, double wrong);

/// Refuses a row with inconsistent figures: bytes / time is the algorithm bandwidth.
void check_row(const NcclTestsRun::Row& row);

/// The user's answers to what a log lacks. Empty and 0: unset.
struct NcclTestsAnswers {
  std::string collective;  ///< One of measured_collectives().
  std::string system;
  int ranks = 0;
  int nodes = 0;
};

/// The curves of one log of nccl-tests: its text output of any version since 1.0, or the JSON that
/// -J writes. Each line of text may have a prefix that differs in digits alone, such as those of
/// mpirun, srun --label, kubectl and quotations, and may lack its # and spaces, as pages show it.
///
/// A file may hold several runs of the same ranks: those of one collective become one curve. Times
/// are those of one operation, out of place (in place if there is no other, with a warning); a size
/// that was measured several times has the median.
std::vector<Curve> read_nccl_tests(const std::string& text, const std::string& file,
                                   const NcclTestsAnswers& answers);

}  // namespace orrery
