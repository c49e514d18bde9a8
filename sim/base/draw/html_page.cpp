#include "sim/base/draw/html_page.hpp"

#include "sim/base/text/markup.hpp"

namespace orrery {
namespace {

constexpr const char* style = R"(
body { font: 15px/1.45 system-ui, Helvetica, Arial, sans-serif; color: #222; background: #fff;
       max-width: 1160px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin: 0 0 .2em; }
h2 { font-size: 1.1em; margin: 2em 0 .4em; border-bottom: 1px solid #ddd; }
p.plan { color: #555; margin: 0 0 1.4em; }
p.note { color: #555; max-width: 75ch; }
p.warning { border-left: 4px solid #c00; padding-left: .8em; max-width: 75ch; }
dl.figures { display: flex; flex-wrap: wrap; gap: .8em; margin: 0; }
dl.figures div { border: 1px solid #ddd; border-radius: 6px; padding: .5em .9em; }
dl.figures dt { color: #555; font-size: .85em; }
dl.figures dd { margin: 0; font-size: 1.35em; font-variant-numeric: tabular-nums; }
dl.figures small { display: block; font-size: .6em; color: #555; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4em 0; }
th, td { text-align: right; padding: .12em .9em .12em 0; font-weight: normal; }
th { color: #555; border-bottom: 1px solid #ddd; }
th.left, td.left { text-align: left; }
svg { max-width: 100%; height: auto; display: block; margin: .4em 0; }
summary { color: #555; cursor: pointer; }
)";

}  // namespace

std::string html_page(const std::string& title, const std::string& body,
                      const std::string& own_style) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"generator\" content=\"orrery\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
         escaped(title) + "</title>\n<style>" + style + own_style +
         "</style>\n</head>\n<body>\n<h1>" + escaped(title) + "</h1>\n" + body +
         "</body>\n</html>\n";
}

std::string json_element(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;) json.replace(at, 1, "\\u003c");
  return "<script type=\"application/json\" id=\"result\">\n" + json + "</script>\n";
}

}  // namespace orrery
