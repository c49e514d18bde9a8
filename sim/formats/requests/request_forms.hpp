#pragma once

#include <string>

#include "sim/formats/requests/read_requests.hpp"

namespace orrery {

/// The rows of each form, with times as they stand there, in seconds. Errors as read_requests.hpp
/// says.
RequestTrace parse_csv_requests(const std::string& text, const std::string& file,
                                RequestFormat format);
RequestTrace parse_json_line_requests(const std::string& text, const std::string& file,
                                      RequestFormat format);
RequestTrace parse_vllm_requests(const std::string& text, const std::string& file);

/// The form that the columns of a CSV's first line speak of; lines where they speak of none.
RequestFormat csv_format(std::string_view header);

/// Seconds since 1970 of "2023-11-16 18:15:46.6805900", with or without "T", "Z" or "+00:00"; NaN
/// for what is none.
double seconds_of_timestamp(std::string_view text);

}  // namespace orrery
