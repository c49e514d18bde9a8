# usage: cmake -D BUNDLE=FOLDER -D INTO=FILE.cpp -P embed.cmake
#
# Writes the files of a page as arrays, so that the program needs no file beside it.
set(text "// Written by sim/explore/page/embed.cmake.\n")
foreach(kind html js css)
  file(READ ${BUNDLE}/explorer.${kind} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND text
    "extern const char orrery_page_${kind}[];\n"
    "extern const unsigned long orrery_page_${kind}_size;\n"
    "const char orrery_page_${kind}[] = {${bytes}0};\n"
    "const unsigned long orrery_page_${kind}_size = ${size};\n")
endforeach()
file(WRITE ${INTO} "${text}")
