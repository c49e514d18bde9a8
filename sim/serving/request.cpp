#include "sim/serving/request.hpp"

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

Slo parse_slo(const std::string& text, const Place& at) {
  const std::string remedy = "write like ttft=2000,tpot=40@p90, in milliseconds";
  Slo slo;
  const std::size_t mark = text.find("@p");
  if (mark != text.npos) {
    const auto percent = plain_number(text.substr(mark + 2));
    if (!percent || *percent <= 0.0 || *percent > 100.0)
      fail_input(at, "'" + shown_text(text.substr(mark)) + "' is not a share of the requests",
                 remedy);
    slo.share = *percent / 100.0;
  }
  for (const std::string& item : split_list(text.substr(0, mark), at)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const auto time =
        equals == item.npos
            ? std::nullopt
            : number_with_unit(item.substr(equals + 1), {{"", 1e-3}, {"ms", 1e-3}, {"s", 1.0}});
    if (!time || *time <= 0.0)
      fail_input(at, "'" + shown_text(item) + "' is not a limit in milliseconds", remedy);
    const Seconds limit{*time};
    if (key == "ttft")
      slo.ttft = limit;
    else if (key == "tpot")
      slo.tpot = limit;
    else if (key == "e2e")
      slo.e2e = limit;
    else
      fail_input(at, "'" + shown_text(key) + "' is not limited here", remedy);
  }
  return slo;
}

std::string slo_text(const Slo& slo) {
  std::vector<std::string> limits;
  for (const auto& [key, limit] :
       {std::pair{"ttft", slo.ttft}, std::pair{"tpot", slo.tpot}, std::pair{"e2e", slo.e2e}})
    if (limit < Slo::any) limits.push_back(std::string{key} + "=" + nine_digits(1e3 * limit.si()));
  return joined(limits, ",") + "@p" + nine_digits(100.0 * slo.share);
}

}  // namespace orrery
