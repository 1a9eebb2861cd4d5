// Style and script of the HTML report; the build makes them from page.css and page.js.
#pragma once

#include <string_view>

namespace asdbench {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace asdbench
