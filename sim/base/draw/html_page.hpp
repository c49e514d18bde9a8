#pragma once

#include <string>

namespace orrery {

/// A page for a browser that loads nothing from elsewhere, with the style of all reports. `body`
/// stands under the title as it is; `own_style`: what the page has beside it.
std::string html_page(const std::string& title, const std::string& body,
                      const std::string& own_style = "");

/// JSON in an element that no browser runs. Nothing in it may look like a tag.
std::string json_element(std::string json);

}  // namespace orrery
