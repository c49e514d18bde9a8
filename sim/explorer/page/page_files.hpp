#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A file of the explorer's page, as bundle/ had it when the program was built.
struct PageFile {
  std::string name;  ///< Last part of its address; "": the page itself.
  const char* media_type;
  std::string_view bytes;
};
const std::vector<PageFile>& page_files();

/// The parts of the page that a report holds.
struct ReportParts {
  std::string_view script, style;
  std::string_view hash;  ///< SHA-256 in base64 of the script that a browser may run (W3C, CSP 3).
};
ReportParts report_parts();

}  // namespace orrery
