#include "sim/output/svg.hpp"

#include <charconv>

namespace orrery {
namespace {

std::string number(double value) {
  char text[64];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 2);
  std::string digits(text, end);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string attribute(const char* name, double value) {
  return std::string{" "} + name + "=\"" + number(value) + "\"";
}

std::string attribute(const char* name, const std::string& value) {
  return std::string{" "} + name + "=\"" + value + "\"";
}

// XML 1.0, 2.2 and 2.4: characters that it does not have at all become a question mark.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return safe;
}

}  // namespace

Svg::Svg(double width, double height) : width_{width}, height_{height} {}

void Svg::line(Point from, Point to, const std::string& colour, double width) {
  body_ += "<line" + attribute("x1", from.first) + attribute("y1", from.second) +
           attribute("x2", to.first) + attribute("y2", to.second) + attribute("stroke", colour) +
           attribute("stroke-width", width) + "/>\n";
}

void Svg::polyline(const std::vector<Point>& points, const std::string& colour, double width) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + number(x) + "," + number(y);
  body_ += "<polyline fill=\"none\" stroke-linejoin=\"round\"" + attribute("points", list) +
           attribute("stroke", colour) + attribute("stroke-width", width) + "/>\n";
}

void Svg::rectangle(Point corner, double width, double height, const std::string& fill) {
  body_ += "<rect" + attribute("x", corner.first) + attribute("y", corner.second) +
           attribute("width", width) + attribute("height", height) + attribute("fill", fill) +
           "/>\n";
}

void Svg::circle(Point centre, double radius, const std::string& fill, const std::string& title) {
  body_ += "<circle" + attribute("cx", centre.first) + attribute("cy", centre.second) +
           attribute("r", radius) + attribute("fill", fill);
  body_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></circle>\n";
}

void Svg::text(Point at, const std::string& words, const SvgText& style) {
  static constexpr const char* anchors[] = {"start", "middle", "end"};
  body_ += "<text" + attribute("x", at.first) + attribute("y", at.second) +
           attribute("font-size", style.size) + attribute("fill", style.colour);
  if (style.anchor != Anchor::start)
    body_ += attribute("text-anchor", std::string{anchors[static_cast<int>(style.anchor)]});
  if (style.bold) body_ += " font-weight=\"bold\"";
  if (style.upwards)
    body_ += " transform=\"rotate(-90 " + number(at.first) + " " + number(at.second) + ")\"";
  body_ += ">" + escaped(words) + "</text>\n";
}

std::string Svg::document() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width_) +
         attribute("height", height_) +
         attribute("viewBox", "0 0 " + number(width_) + " " + number(height_)) +
         " font-family=\"Helvetica, Arial, sans-serif\">\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

}  // namespace orrery
