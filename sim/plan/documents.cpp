#include "sim/plan/documents.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/statistics.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr double longest = 1 << 30;
constexpr int quantiles = 1024;
constexpr const char* remedy =
    "write like fixed:1024, uniform:200,2000, lognormal:1024,0.8 (median, sigma), or name a file "
    "with a length a line";

double length_in(const std::string& word, const JsonValue& value) {
  const auto length = plain_number(word);
  if (!length || *length < 1.0 || *length > longest)
    value.fail("'" + shown_text(word) + "' is not a length from 1 to " +
                   grouped(static_cast<std::int64_t>(longest)),
               remedy);
  return *length;
}

std::vector<double> of_file(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<double> lengths;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    const std::string word{trimmed(line)};
    if (word.empty()) continue;
    const auto length = plain_number(word);
    if (!length || *length < 1.0 || *length > longest)
      fail_input({path, "line " + std::to_string(number)},
                 "'" + shown_text(word) + "' is not a length in tokens", "write one length a line");
    lengths.push_back(*length);
  }
  if (lengths.empty()) fail_input({path, ""}, "holds no length", "write one length a line");
  return lengths;
}

}  // namespace

Documents read_documents(const JsonValue& value) {
  const std::string text = value.text();
  Documents documents{text};
  if (text == "none") return documents;
  std::vector<double> lengths;
  const auto colon = text.find(':');
  const std::string kind = colon == text.npos ? "" : text.substr(0, colon);
  const auto numbers = [&](std::size_t count) {
    const auto words = split(text.substr(colon + 1), ",");
    if (words.size() != count) value.fail("'" + shown_text(text) + "' is no distribution", remedy);
    return words;
  };
  if (kind == "fixed") {
    lengths.push_back(length_in(numbers(1)[0], value));
  } else if (kind == "uniform") {
    const auto words = numbers(2);
    const double low = length_in(words[0], value), high = length_in(words[1], value);
    if (high < low) value.fail("the range of '" + shown_text(text) + "' falls", remedy);
    for (int i = 0; i < quantiles; ++i)
      lengths.push_back(low + (high - low) * (i + 0.5) / quantiles);
  } else if (kind == "lognormal") {
    const auto words = numbers(2);
    const double median = length_in(words[0], value);
    const auto sigma = plain_number(words[1]);
    if (!sigma || *sigma < 0.0 || *sigma > 4.0)
      value.fail("'" + shown_text(words[1]) + "' is no sigma from 0 to 4", remedy);
    for (int i = 0; i < quantiles; ++i)
      lengths.push_back(std::clamp(
          median * std::exp(*sigma * normal_quantile((i + 0.5) / quantiles)), 1.0, longest));
  } else {
    lengths = of_file(text);
  }
  documents.lengths = std::make_shared<const std::vector<double>>(std::move(lengths));
  return documents;
}

PackedLengths packed(const Documents& documents, std::int64_t sequence) {
  const auto most = static_cast<double>(sequence);
  if (!documents.given()) return {most, 0.0};
  if (documents.whole) {
    double tokens = 0.0, squares = 0.0;
    for (const double length : *documents.lengths) {
      tokens += length;
      squares += length * length;
    }
    return {squares / tokens, 0.0};
  }
  // Pieces of documents that end with a sequence: whole ones, and the rest.
  double pieces = 0.0, sum = 0.0, squares = 0.0;
  const auto each_piece = [&](const auto& visit) {
    for (const double length : *documents.lengths) {
      const double whole = std::floor(length / most);
      if (whole > 0.0) visit(whole, most);
      if (const double rest = length - whole * most; rest > 0.0) visit(1.0, rest);
    }
  };
  each_piece([&](double count, double length) {
    pieces += count;
    sum += count * length;
    squares += count * length * length;
  });
  const double attended = squares / sum;
  double spread = 0.0;
  each_piece([&](double count, double length) {
    const double excess = length * length - attended * length;
    spread += count * excess * excess;
  });
  const double mean = sum / pieces;
  const double variance_of_sum = most / mean * spread / pieces;
  return {attended, std::sqrt(variance_of_sum) / (most * attended)};
}

double largest_of_normals(int n) {
  if (n <= 1) return 0.0;
  // The mean is the integral of 1 - P(largest < x) over positive x, less that of P over negative x.
  constexpr double step = 1.0 / 256.0;
  double mean = 0.0;
  for (double x = step / 2.0; x < 9.0; x += step)
    mean += step * (1.0 - std::pow(normal_share(x), n) - std::pow(normal_share(-x), n));
  return mean;
}

}  // namespace orrery
