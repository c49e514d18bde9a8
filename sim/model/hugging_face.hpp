#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// A config.json while it is read: records the requested keys, so that any other can be refused at
/// the end, as an unread key may change the model's shape.
class ConfigKeys {
 public:
  explicit ConfigKeys(JsonValue json) : json_{std::move(json)} {}

  const JsonValue& json() const { return json_; }

  /// Looks a key up under any of its spellings; two that disagree are an error. "a/b" is the key b
  /// of the object a. Null counts as absent.
  std::optional<JsonValue> find(const std::vector<std::string>& spellings);
  /// The value of one key. Errors: absent.
  JsonValue required(const std::string& key);
  /// A size of at least 1. Errors: absent without a default.
  std::int64_t size(const std::vector<std::string>& spellings, std::int64_t maximum,
                    std::optional<std::int64_t> absent = std::nullopt);
  /// A number that may be 0, which null also means.
  std::int64_t count(const std::vector<std::string>& spellings, std::int64_t maximum,
                     std::int64_t absent);
  bool flag(const std::string& key, bool absent);
  /// A key that may only be absent, null, false, zero or empty, as other values are not supported.
  void refuse_if_set(const std::string& key, const std::string& why);

  /// The key is written, with null as its value: what it describes is absent from the model.
  bool is_null(const std::string& key) const;

  /// Refuses every key that was not requested, changes the shape of some model, and is not among
  /// the words of `harmless`. A switch that is off (null, false, 0, empty) changes nothing.
  void refuse_unknown(const std::string& harmless) const;

 private:
  JsonValue json_;
  std::vector<std::string> requested_;
};

/// Distinguishes a Hugging Face config.json from this project's format.
bool is_hugging_face(const JsonValue& json);

/// The decoder-only language model that a config.json describes, or the text part of a multimodal
/// one. Accepts transformers' spellings of version 4 and 5. The result has no name. Errors: an
/// unknown model_type; a missing key; a key that may change shapes. Source: the configuration
/// classes of huggingface/transformers, src/transformers/models.
Model parse_hugging_face(const JsonValue& json);

/// The model_type values that parse_hugging_face understands.
const std::vector<std::string>& hugging_face_types();

}  // namespace orrery
