#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/document.hpp"

namespace orrery {

/// A file for a browser that needs no server and loads nothing: the explorer's styles and drawings
/// with their data. A browser runs its one script and no other (Content Security Policy, by hash).
struct ReportPage {
  std::string title;
  std::vector<std::string> about;  ///< Lines below the title: plain text.
  std::string command;             ///< The command that wrote it; "": none.
  std::string body;                ///< HTML.
  std::string result;              ///< JSON that drawings are made of, in the element `result`.
  /// Further data of drawings: JSON by the id of its element, "memory-data".
  std::vector<std::pair<std::string, std::string>> data;
  std::string timeline;  ///< timeline_bytes(); "": none. In the element `timeline-data`.
};
std::string report_html(const ReportPage& page);

/// Limit of a mail: no report is larger, unless its result alone is.
inline constexpr std::size_t most_bytes_of_a_report = 2'900'000;

/// Free bytes for a timeline in a page that has none yet.
std::size_t space_for_timeline(const ReportPage& page);

/// A figure with its name above and more below it, within `<dl class="figures">`.
std::string key_figure(const std::string& name, const std::string& value, const std::string& more);

/// A text as a terminal shows it, with its blanks and empty lines.
std::string preformatted(const std::string& text);

/// The element in which the script shows the result's "inputs", or the JSON in `inputs-data`.
/// `name`: HTML.
std::string inputs_place(
    const std::string& name = "all inputs: models, systems, software, measurements");
/// The element in which the script draws a step over time, with its heading.
std::string timeline_place();
/// Places of drawings side by side, by their ids.
std::string chart_places(const std::vector<std::string>& ids);

/// Parts of a report that do not come from the answer.
struct ReportAbout {
  std::string command;  ///< The command that wrote it, as a shell takes it; "": none.
};

/// A report of a document: its title, `drawings` (HTML), and its text.
ReportPage document_page(const Document& document, const std::string& drawings, std::string result,
                         const ReportAbout& about);

}  // namespace orrery
