#include "sim/formats/recipe/model_sizes.hpp"

#include <algorithm>

namespace orrery {

Model ModelSizes::model(const std::string& name, const std::string& source,
                        const std::string& file) const {
  return parse_model(
      JsonValue::parse("{\"schema\": \"orrery.model/1\", \"name\": " + json_quoted(name) +
                           ", \"source\": " + json_quoted(source) + entries_ + "}",
                       file));
}

std::int64_t padded_rows(std::int64_t tokens, std::int64_t multiple) {
  const std::int64_t of = std::max<std::int64_t>(1, multiple);
  return (tokens + of - 1) / of * of;
}

}  // namespace orrery
