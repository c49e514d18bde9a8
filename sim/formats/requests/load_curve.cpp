#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/requests/session_files.hpp"

namespace orrery {

LoadCurve parse_load_curve(const std::string& text, const std::string& file) {
  require_text(text, file, "a load by time");
  constexpr double most_rate_of_load = 1e6, longest_load = 1e8;
  LoadCurve curve;
  bool has_header = false;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    if (line.empty() || line.starts_with('#')) continue;
    const Place at{file + ": line " + std::to_string(index + 1), ""};
    const std::size_t comma = line.find(',');
    const std::string_view time = trimmed(line.substr(0, comma));
    const std::string_view rate =
        comma == line.npos ? std::string_view{} : trimmed(line.substr(comma + 1));
    if (!has_header) {
      if (time != "time_s" || rate != "requests_per_s")
        fail_input(at, "has the columns '" + shown_text(std::string{line}) + "'",
                   "begin with the line time_s,requests_per_s");
      has_header = true;
      continue;
    }
    const double seconds = plain_number(time).value_or(-1.0);
    const double requests = plain_number(rate).value_or(-1.0);
    if (!(seconds >= 0.0 && seconds <= longest_load))
      fail_input(at, "has no time from 0 to 1e8 s", "write like 600,4.5");
    if (!(requests >= 0.0 && requests <= most_rate_of_load))
      fail_input(at, "has no rate from 0 to 1e6 requests a second", "write like 600,4.5");
    if (curve.stages.empty() ? seconds != 0.0 : seconds <= curve.stages.back().begin.si())
      fail_input(at,
                 curve.stages.empty() ? "begins at " + nine_digits(seconds) + " s"
                                      : "does not come after the row before it",
                 "begin at 0 and let times rise");
    curve.stages.push_back({Seconds{seconds}, requests});
  }
  if (curve.stages.size() < 2 || curve.stages.back().rate != 0.0)
    fail_input({file, ""}, "does not end with a row of rate 0", "add one, such as 86400,0");
  curve.end = curve.stages.back().begin;
  curve.stages.pop_back();
  if (!(curve.requests() > 0.0)) fail_input({file, ""}, "has no load", "give a rate above 0");
  return curve;
}

LoadCurve read_load_curve(const std::string& path) {
  return parse_load_curve(read_text_file(path), path);
}

}  // namespace orrery
