#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "calibration/host/json.hpp"

namespace orrery::calibration {

/// One thing to measure: a kernel of exact shape, a transfer, a collective. What it may say is in
/// the table of case_kinds(), which readers, writers and documentation share.
struct Case {
  std::string kind;
  std::map<std::string, std::string> choices;  ///< "dtype" -> "bf16"
  std::map<std::string, std::int64_t> sizes;   ///< "m" -> 4096
  double weight = 1.0;                         ///< Its importance; larger ones come first.

  std::int64_t size(const std::string& name) const { return sizes.at(name); }
  const std::string& choice(const std::string& name) const { return choices.at(name); }
  /// "gemm forward bf16 m=4096 n=4096 k=4096": the same for the same case, different for others.
  std::string id() const;
};

struct CaseKind {
  struct Choice {
    std::string name;
    std::vector<std::string> values;
    std::string before{};  ///< The value of cases older than the key; "": all have it.
  };
  struct Size {
    std::string name;
    std::int64_t least, most;
  };
  std::string name;
  std::string meaning;
  std::vector<Choice> choices;
  std::vector<Size> sizes;
};
const std::vector<CaseKind>& case_kinds();
std::vector<std::string> case_kind_names();

/// A case from its choices' values and its sizes, both in the table's order.
Case make_case(const std::string& kind, const std::vector<std::string>& choices,
               const std::vector<std::int64_t>& sizes, double weight = 1.0);

/// The keys that a case of `kind` has in JSON, "kind" first. Errors: no such kind.
std::vector<std::string> case_keys(const JsonPlace& kind);
/// Reads these keys of `json`; others are the caller's. Errors: missing, wrong, contradicting.
Case read_case(const JsonPlace& json);
/// Appends them.
void write_case(Json::Object& json, const Case& what);

}  // namespace orrery::calibration
