#pragma once

#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

namespace orrery {

/// The text of a file that may be compressed with gzip, whatever it is called, a piece at a time:
/// traces are hundreds of megabytes, and a good part of them is skipped.
///
/// Errors (bad_input) are thrown while it is read: no regular file, a damaged or cut off gzip
/// stream, more than `most_bytes` of text, and more than `longest_quote` of it without a quotation
/// mark: a string or number of which no reader could hold the whole.
class InflatedText : public std::streambuf {
 public:
  static constexpr std::int64_t most_bytes = std::int64_t{16} << 30;
  static constexpr std::int64_t longest_quote = std::int64_t{64} << 20;

  explicit InflatedText(const std::string& path);
  ~InflatedText() override;
  InflatedText(const InflatedText&) = delete;
  InflatedText& operator=(const InflatedText&) = delete;

  std::int64_t bytes() const { return bytes_; }  ///< Read so far.

 protected:
  int_type underflow() override;

 private:
  struct Gzip;
  std::string path_;
  std::unique_ptr<Gzip> file_;
  std::vector<char> buffer_;
  std::int64_t bytes_ = 0, since_quote_ = 0;
};

}  // namespace orrery
