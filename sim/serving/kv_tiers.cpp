#include "sim/serving/kv_tiers.hpp"

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr Bytes most_of_tier{1e18};

KvTier parse_tier(const std::string& text, const Place& at) {
  const std::string remedy = "write like nvme:4TB@7GB/s or remote:1TB@20GB/s@2ms";
  const std::size_t colon = text.find(':');
  if (colon == text.npos) fail_input(at, "'" + shown_text(text) + "' says no size", remedy);
  KvTier tier;
  tier.kind = choice<TierKind>(text.substr(0, colon), at, "is no memory behind the host's");
  const std::vector<std::string> figures = split(text.substr(colon + 1), "@");
  if (figures.size() > 3) fail_input(at, "'" + shown_text(text) + "' says too much", remedy);
  tier.size = parse_bytes(figures[0], at);
  if (!(tier.size > Bytes{}) || tier.size > most_of_tier)
    fail_input(at, "'" + shown_text(figures[0]) + "' is not between 1 B and 1 EB", remedy);
  if (figures.size() > 1) tier.rate = parse_bandwidth(figures[1], at);
  if (tier.kind == TierKind::nvme && figures.size() < 2)
    fail_input(at, "'" + shown_text(text) + "' says no rate of its reads", remedy);
  if (figures.size() > 1 && !(tier.rate > BytesPerSecond{}))
    fail_input(at, "'" + shown_text(text) + "' is never read: its rate is 0", remedy);
  tier.latency = tier.kind == TierKind::remote ? usual_remote_latency : Seconds{};
  if (figures.size() > 2) tier.latency = parse_duration(figures[2], at);
  return tier;
}

std::string exact_bytes(Bytes bytes) {
  for (const auto& [unit, size] : {std::pair{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}})
    if (bytes.si() >= size) return nine_digits(bytes.si() / size) + unit;
  return nine_digits(bytes.si()) + "B";
}

}  // namespace

std::vector<KvTier> parse_kv_tiers(const std::string& text, const Place& at) {
  std::vector<KvTier> tiers;
  if (text == "none") return tiers;
  for (const std::string& one : split(text, "+")) {
    tiers.push_back(parse_tier(one, at));
    if (tiers.size() > 1 && tiers.back().kind <= tiers[tiers.size() - 2].kind)
      fail_input(at,
                 "'" + shown_text(text) + "' has " + name(tiers.back().kind) + " behind " +
                     name(tiers[tiers.size() - 2].kind),
                 "write each once, nvme first");
  }
  return tiers;
}

std::string kv_tiers_text(const std::vector<KvTier>& tiers) {
  std::string text;
  for (const KvTier& tier : tiers) {
    const Seconds usual = tier.kind == TierKind::remote ? usual_remote_latency : Seconds{};
    text += (text.empty() ? "" : "+") + name(tier.kind) + ":" + exact_bytes(tier.size);
    if (tier.rate > BytesPerSecond{}) text += "@" + nine_digits(tier.rate.si() / 1e9) + "GB/s";
    if (tier.latency != usual && tier.rate > BytesPerSecond{})
      text += "@" + nine_digits(tier.latency.si() * 1e6) + "us";
  }
  return text.empty() ? "none" : text;
}

}  // namespace orrery
