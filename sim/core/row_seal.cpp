#include "sim/core/row_seal.hpp"

#include <cassert>

#include "sim/core/fingerprint.hpp"

namespace orrery {
namespace {

constexpr std::string_view key = ",\"check\":\"";
constexpr std::string_view end = "\"}";
constexpr std::size_t digits = 16;

// `salt`: what the seal tells beside the line.
std::string with_seal(const std::string& line, const std::string& salt) {
  assert(line.ends_with('}'));
  std::string text = line.substr(0, line.size() - 1);
  text += key;
  text += fingerprint_of(salt + line);
  return text += end;
}

std::optional<std::string> without_seal(const std::string& line, const std::string& salt) {
  const std::size_t length = key.size() + digits + end.size();
  if (line.size() < length || !line.ends_with(end)) return std::nullopt;
  const std::size_t at = line.size() - length;
  if (line.compare(at, key.size(), key) != 0) return std::nullopt;
  std::string bare = line.substr(0, at) + "}";
  if (line.compare(at + key.size(), digits, fingerprint_of(salt + bare)) != 0) return std::nullopt;
  return bare;
}

}  // namespace

std::string sealed(const std::string& line) { return with_seal(line, ""); }

std::optional<std::string> unsealed(const std::string& line) { return without_seal(line, ""); }

RowSeal::RowSeal(const ShardHeader& header) : owner_{fingerprint_of(header.line)} {}

std::string RowSeal::seal(std::int64_t place, const std::string& row) const {
  return with_seal(row, owner_ + " " + std::to_string(place) + " ");
}

std::optional<std::string> RowSeal::open(std::int64_t place, const std::string& line) const {
  return without_seal(line, owner_ + " " + std::to_string(place) + " ");
}

}  // namespace orrery
