#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// What a rank does at once: a line each, and on one line nothing overlaps. Stage transfers have
/// one for each direction, and gradients one for dense and one for expert layers, as both may be on
/// their way together.
enum class Track {
  compute,
  tensor,
  context,
  expert,
  send_forward,
  send_backward,
  data,
  expert_data,
  experts,  ///< One for each rank of an expert group that a role stands for, where they differ.
};
inline constexpr int tracks = 9;

/// "compute", "tensor parallel", ...; of Track::experts a rank's number follows.
std::string name(Track track);

/// A stretch of time on a rank's track, in whole nanoseconds from the beginning of the step.
struct Slice {
  int role = 0;
  Track track = Track::compute;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = 0;
  std::string name;           ///< "F 3", "B 3 chunk 1", "gradients"
  std::string_view category;  ///< "forward", "transfer", ...
  std::vector<std::pair<std::string_view, double>> facts;
  int sends = -1;                  ///< Id of the arrow that leaves it; -1: none.
  std::vector<int> receives = {};  ///< Ids of the arrows that end at it.
  int of_rank = -1;                ///< Of Track::experts: whose experts.
};

/// Puts slices in the order in which viewers read them: by role as in `roles`, then track, then
/// time, what encloses before what it encloses. An arrow with one end
/// is taken away.
void arrange(std::vector<Slice>& slices, const std::vector<int>& roles);

}  // namespace orrery
