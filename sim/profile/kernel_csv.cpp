#include "sim/profile/kernel_csv.hpp"

#include <cstdio>

namespace orrery {
namespace {

std::string exactly(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string inside;
  for (const char c : text) inside += c == '"' ? std::string{"\"\""} : std::string(1, c);
  return "\"" + inside + "\"";
}

std::string figures(const OperationPrice& one) {
  const KernelRoofs& roofs = one.roofs;
  std::string text;
  for (const double value : {roofs.flop.si(), roofs.bytes.si(), roofs.ops_per_byte(), roofs.ridge(),
                             roofs.compute_time().si(), roofs.memory_time().si()})
    text += exactly(value) + ",";
  return text + name(one.bound()) + "," + exactly(one.time.si()) + "," + exactly(one.low.si()) +
         "," + exactly(one.high.si()) + "," + name(one.tag) + "," + exactly(one.reached().si()) +
         "," + exactly(one.share_of_roof());
}

constexpr const char* figure_names =
    "flop,bytes,ops_per_byte,ridge_ops_per_byte,compute_roof_s,memory_roof_s,bound,time_s,low_s,"
    "high_s,basis,flop_per_s,share_of_roof";

}  // namespace

std::string operation_csv_header() {
  return std::string{"operation,kind,when,sizes,format,count,"} + figure_names;
}

std::string operation_csv_line(const OperationPrice& one) {
  return quoted(one.name) + "," + one.kind + "," + one.when + "," + quoted(one.sizes) + "," +
         one.format + "," + exactly(one.count) + "," + figures(one);
}

std::string kernel_csv(const std::vector<KernelAnswer>& answers, const std::string& key) {
  std::string text =
      (key.empty() ? "" : key + ",") + std::string{figure_names} +
      ",training_time_s,training_low_s,training_high_s,training_basis,served_time_s,served_basis\n";
  for (const KernelAnswer& answer : answers) {
    if (!key.empty()) text += std::to_string(answer.question.at(key)) + ",";
    text += figures(answer.main());
    if (answer.training)
      text += "," + exactly(answer.training->time.si()) + "," + exactly(answer.training->low.si()) +
              "," + exactly(answer.training->high.si()) + "," + name(answer.training->tag);
    else
      text += ",,,,";
    text += answer.served ? "," + exactly(answer.served->time.si()) + "," + name(answer.served->tag)
                          : std::string{",,"};
    text += "\n";
  }
  return text;
}

}  // namespace orrery
