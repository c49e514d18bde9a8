#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/host/case.hpp"
#include "calibration/host/clock_series.hpp"
#include "calibration/host/reference_track.hpp"
#include "calibration/host/stopping.hpp"

namespace orrery::calibration {

/// Hardware and software that a record was measured on.
struct Machine {
  std::string gpu;                 ///< The driver's name: "NVIDIA H200".
  std::string gpu_id;              ///< A hash of its UUID: distinguishes GPUs, names none.
  std::string compute_capability;  ///< "9.0"
  std::string driver;              ///< The newest CUDA it serves, or its own version if known.
  std::string cuda_runtime;
  std::string cublas;
  std::string nccl;  ///< "": built without it.
  int gpus = 1;      ///< Usable ones.
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  double boost_clock_hz = 0.0;  ///< The highest that the multiprocessors may run at.
  double power_limit_w = 0.0;   ///< 0: the driver does not say.
  std::string ecc{};            ///< "on", "off"; "": the driver does not say. So with mig.
  std::string mig{};            ///< Division into instances.
  std::string cpu{};            ///< The host's own name; "": unknown.

  bool operator==(const Machine&) const = default;
};

enum class Outcome { measured, failed, skipped };
const std::vector<std::string>& outcome_names();

/// The result of one case.
struct Measurement {
  Case what;
  Outcome outcome = Outcome::measured;
  std::string reason;                  ///< Why it failed or was skipped.
  std::string implementation;          ///< The code that ran: "cublasLt, choice 2 of 8"
  std::optional<TimingSummary> cold;   ///< Each run after the L2 cache was flushed.
  std::optional<TimingSummary> warm;   ///< Back to back.
  Stopped stopped = Stopped::not_yet;  ///< The cold timing.
  /// |result - reference| / |reference| against double precision, over the elements compared;
  /// absent if there is nothing to compare.
  std::optional<double> relative_error;
  /// The series of `sustained`, from the first run on.
  std::vector<SeriesPoint> series;
  /// The reference product's time around it, relative to its fastest.
  double reference_slowdown = 1.0;
  /// Further figures. Names end in a unit: _us _s _hz _bytes _flop _bytes_per_s _flop_per_s _ratio
  /// _count _w _c _bits.
  std::map<std::string, double> figures;
};

/// A calibration record, `orrery.calibration-record/1`.
struct Record {
  Machine machine;
  StoppingLimits limits;
  std::string command;
  std::string program;  ///< "orrery-gpu 0.1.0"
  std::string started;  ///< UTC, "2026-11-21T18:00:00Z"
  std::vector<ReferenceTrack::Check> reference;
  std::vector<Measurement> measurements;

  const Measurement* find(const std::string& id) const;
};

/// One measurement a line, and at the end a digest of all that stands before it.
std::string record_json(const Record& record);

/// The text of a record up to its measurements' closing bracket, with the digest and what follows.
std::string with_digest(const std::string& text);

/// Errors (bad_input) name the place: no record, cut off, edited after it was written (its digest
/// is another one), unknown or missing keys, times that are not positive or out of order, figures
/// without a unit, a case twice.
Record parse_record(const std::string& text, const std::string& file);

/// Checks that measurements of `machine` may join those of `record`. Errors (bad_input) name the
/// first difference.
void require_same_machine(const Record& record, const Machine& machine, const std::string& file);

}  // namespace orrery::calibration
