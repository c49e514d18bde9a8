#pragma once

#include <cassert>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

/// Values one behind the other, for the way from a worker to its parent, which is the same program.
class AnswerWriter {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them in the order in which they were put.
class AnswerReader {
 public:
  explicit AnswerReader(const std::string& bytes) : bytes_{bytes} {}
  template <class Value>
  Value get() {
    Value value;
    assert(at_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string get_text() {
    const auto size = get<std::size_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace orrery
