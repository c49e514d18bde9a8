#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A file of the explorer's page, as bundle/ had it when the program was built.
struct PageFile {
  std::string name;  ///< In its address; "": the page itself.
  const char* media_type;
  std::string_view bytes;
};
const std::vector<PageFile>& page_files();

/// What a report holds of the page, as bundle/ had it likewise.
struct ReportParts {
  std::string_view script, style;
  std::string_view
      hash;  ///< Of the script, SHA-256 in base64: what a browser may run (W3C, CSP 3).
};
ReportParts report_parts();

}  // namespace orrery
