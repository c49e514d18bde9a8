#pragma once

#include <string>
#include <vector>

namespace orrery {

/// A file for a browser that needs no server and loads nothing: the explorer's styles and drawings
/// with what they show. A browser runs its one script and no other, whatever names it holds
/// (Content Security Policy, by hash).
struct ReportPage {
  std::string title;
  std::vector<std::string> about;  ///< Lines below the title: plain text.
  std::string command;             ///< That wrote it; "": none.
  std::string body;                ///< HTML.
  std::string result;              ///< JSON that drawings are made of, in the element `result`.
  std::string timeline;            ///< timeline_bytes(); "": none. In the element `timeline-data`.
};
std::string report_html(const ReportPage& page);

/// Where the script draws a step over time, with its heading.
std::string timeline_place();

}  // namespace orrery
