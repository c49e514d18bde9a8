#include "sim/explorer/page/page_files.hpp"

// Written by embed.cmake from the files of bundle/.
extern const char orrery_explorer_html[];
extern const unsigned long orrery_explorer_html_size;
extern const char orrery_explorer_js[];
extern const unsigned long orrery_explorer_js_size;
extern const char orrery_explorer_css[];
extern const unsigned long orrery_explorer_css_size;
extern const char orrery_report_js[];
extern const unsigned long orrery_report_js_size;
extern const char orrery_report_css[];
extern const unsigned long orrery_report_css_size;
extern const char orrery_report_hash[];
extern const unsigned long orrery_report_hash_size;

namespace orrery {

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> files{
      {"", "text/html; charset=utf-8", {orrery_explorer_html, orrery_explorer_html_size}},
      {"explorer.js",
       "text/javascript; charset=utf-8",
       {orrery_explorer_js, orrery_explorer_js_size}},
      {"explorer.css", "text/css; charset=utf-8", {orrery_explorer_css, orrery_explorer_css_size}}};
  return files;
}

ReportParts report_parts() {
  return {{orrery_report_js, orrery_report_js_size},
          {orrery_report_css, orrery_report_css_size},
          {orrery_report_hash, orrery_report_hash_size}};
}

}  // namespace orrery
