#include "sim/profile/inflated_text.hpp"

#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/error.hpp"

namespace orrery {

struct InflatedText::Gzip {
  gzFile file = nullptr;
};

InflatedText::InflatedText(const std::string& path)
    : path_{path}, file_{std::make_unique<Gzip>()}, buffer_(1 << 18) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    fail_input({path, ""},
               std::filesystem::exists(path, error) ? "is not a file" : "does not exist",
               "name a trace that PyTorch's profiler wrote");
  // Reads what is not compressed as it is.
  file_->file = gzopen(path.c_str(), "rb");
  if (!file_->file) fail_input({path, ""}, "cannot be opened", "check its permissions");
  gzbuffer(file_->file, 1 << 18);
}

InflatedText::~InflatedText() {
  if (file_->file) gzclose(file_->file);
}

InflatedText::int_type InflatedText::underflow() {
  const int count = gzread(file_->file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* const why = gzerror(file_->file, &code);
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    const bool cut_off = code == Z_BUF_ERROR;
    fail_input({path_, ""},
               cut_off ? "is cut off within its gzip stream"
                       : "is a damaged gzip file (" + std::string{why ? why : "unreadable"} + ")",
               "copy it again, or write the trace again");
  }
  if (count == 0) return traits_type::eof();
  bytes_ += count;
  if (bytes_ > most_bytes)
    fail_input({path_, ""}, "holds over 16 GiB of text", "profile fewer steps");
  const auto end = buffer_.begin() + count;
  const auto quote = std::find(std::make_reverse_iterator(end), buffer_.rend(), '"');
  since_quote_ =
      quote == buffer_.rend() ? since_quote_ + count : quote - std::make_reverse_iterator(end);
  if (since_quote_ > longest_quote)
    fail_input({path_, ""}, "has 64 MiB of text without a quotation mark",
               "name a trace that PyTorch's profiler wrote");
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(buffer_.front());
}

}  // namespace orrery
