#include "sim/core/svg.hpp"

#include <charconv>

#include "sim/core/quoting.hpp"

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

std::string titled(const char* element, const std::string& title) {
  if (title.empty()) return "/>\n";
  return "><title>" + escaped(title) + "</title></" + element + ">\n";
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

void Svg::rectangle(Point corner, double width, double height, const std::string& fill,
                    const std::string& title) {
  body_ += "<rect" + attribute("x", corner.first) + attribute("y", corner.second) +
           attribute("width", width) + attribute("height", height) + attribute("fill", fill) +
           titled("rect", title);
}

void Svg::boxes(const std::vector<Box>& all, const std::string& fill) {
  std::string path;
  for (const Box& box : all)
    path += "M" + number(box.x) + " " + number(box.y) + "h" + number(box.width) + "v" +
            number(box.height) + "h" + number(-box.width) + "z";
  if (!path.empty()) body_ += "<path" + attribute("d", path) + attribute("fill", fill) + "/>\n";
}

void Svg::circle(Point centre, double radius, const std::string& fill, const std::string& title,
                 double opacity) {
  body_ += "<circle" + attribute("cx", centre.first) + attribute("cy", centre.second) +
           attribute("r", radius) + attribute("fill", fill) +
           (opacity < 1.0 ? attribute("fill-opacity", opacity) : "") + titled("circle", title);
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
         " font-family=\"Helvetica, Arial, sans-serif\">\n<!-- orrery -->\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

}  // namespace orrery
