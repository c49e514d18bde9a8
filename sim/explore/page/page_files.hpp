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

}  // namespace orrery
