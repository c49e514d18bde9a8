#include "sim/explore/page/page_files.hpp"

// Written by embed.cmake from the files of bundle/.
extern const char orrery_page_html[];
extern const unsigned long orrery_page_html_size;
extern const char orrery_page_js[];
extern const unsigned long orrery_page_js_size;
extern const char orrery_page_css[];
extern const unsigned long orrery_page_css_size;

namespace orrery {

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> files{
      {"", "text/html; charset=utf-8", {orrery_page_html, orrery_page_html_size}},
      {"explorer.js", "text/javascript; charset=utf-8", {orrery_page_js, orrery_page_js_size}},
      {"explorer.css", "text/css; charset=utf-8", {orrery_page_css, orrery_page_css_size}}};
  return files;
}

}  // namespace orrery
