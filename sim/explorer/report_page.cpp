#include "sim/explorer/report_page.hpp"

#include <sstream>
#include <string_view>

#include "sim/core/quoting.hpp"
#include "sim/explorer/page/page_files.hpp"

namespace orrery {
namespace {

// RFC 4648.
std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    unsigned three = 0;
    for (std::size_t i = 0; i < 3; ++i)
      three = three << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// JSON in an element that no browser runs. Nothing in it may look like a tag.
std::string json_element(const std::string& id, std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;) json.replace(at, 1, "\\u003c");
  return "<script type=\"application/json\" id=\"" + id + "\">\n" + json + "</script>\n";
}

std::string style() { return "<style>" + std::string{report_parts().style} + "</style>\n"; }

}  // namespace

std::string timeline_place() {
  return R"(<section aria-labelledby="timeline-title">
<div class="section-head"><h2 id="timeline-title">The step over time</h2>
<span id="timeline-scale" class="quiet"></span>
<span class="tools"><button type="button" id="zoom-out" aria-label="Zoom out">−</button>
<button type="button" id="zoom-in" aria-label="Zoom in">+</button>
<button type="button" id="zoom-fit">Whole step</button></span></div>
<div id="timeline-legend"></div>
<canvas id="timeline-overview" aria-hidden="true"></canvas>
<div id="timeline-frame">
<canvas id="timeline" tabindex="0" role="application"
 aria-label="Timeline of the simulated ranks: arrows pan, plus and minus zoom, brackets go on"
 aria-describedby="timeline-details"></canvas>
<div id="timeline-spacer"></div></div>
<div id="timeline-details" aria-live="polite"></div>
<noscript><p class="warning">This drawing and those of parts and memory need scripts, which your
viewer does not run. Open the file in a browser.</p></noscript>
</section>
)";
}

std::string inputs_place(const std::string& name) {
  return "<details id=\"inputs\"><summary>" + name + "</summary><pre></pre></details>\n";
}

std::string chart_places(const std::vector<std::string>& ids) {
  std::string html = "<div class=\"charts\">";
  for (const std::string& id : ids) html += "<div id=\"" + id + "\"></div>";
  return html + "</div>\n";
}

ReportPage document_page(const Document& document, const std::string& drawings, std::string result,
                         const ReportAbout& about) {
  return {.title = document.name(),
          .about = {document.about(), "Orrery " ORRERY_VERSION},
          .command = about.command,
          .body = drawings + document.html(),
          .result = std::move(result),
          .data = {},
          .timeline = ""};
}

std::string key_figure(const std::string& name, const std::string& value, const std::string& more) {
  return "<div class=\"figure\"><dt>" + escaped(name) + "</dt><dd><span class=\"value\">" +
         escaped(value) + "</span><span class=\"note\">" + escaped(more) + "</span></dd></div>\n";
}

// Line by line, as escaped() lets no control character pass, of which the line's end is one.
std::string preformatted(const std::string& text) {
  std::string html = "<pre>";
  std::istringstream all{text};
  for (std::string line; std::getline(all, line);) html += escaped(line) + "\n";
  return html + "</pre>\n";
}

std::size_t space_for_timeline(const ReportPage& page) {
  const std::size_t without = report_html(page).size();
  return without < most_bytes_of_a_report ? (most_bytes_of_a_report - without) / 4 * 3 : 0;
}

std::string report_html(const ReportPage& page) {
  const ReportParts parts = report_parts();
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'sha256-" +
      std::string{parts.hash} +
      "'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"generator\" content=\"orrery\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      escaped(page.title) + "</title>\n" + style() + "</head>\n<body class=\"report\">\n<main>\n" +
      "<h1>" + escaped(page.title) + "</h1>\n";
  for (const std::string& line : page.about)
    html += "<p class=\"quiet\">" + escaped(line) + "</p>\n";
  html += page.body;
  if (!page.command.empty())
    html += "<h2>The same, typed</h2>\n<pre id=\"command\">" + escaped(page.command) + "</pre>\n";
  html += "<div id=\"announcer\" class=\"unseen\" aria-live=\"polite\"></div>\n</main>\n";
  html += json_element("result", page.result);
  for (const auto& [id, json] : page.data) html += json_element(id, json);
  if (!page.timeline.empty())
    html +=
        "<script type=\"text/plain\" id=\"timeline-data\">" + base64(page.timeline) + "</script>\n";
  return html + "<script>" + std::string{parts.script} + "</script>\n</body>\n</html>\n";
}

}  // namespace orrery
