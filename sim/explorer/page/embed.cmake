# usage: cmake -D BUNDLE=FOLDER -D INTO=FILE.cpp -P embed.cmake
#
# Writes the files of the bundle as arrays, so that the program needs no file beside it.
set(text "// Written by sim/explorer/page/embed.cmake.\n")
foreach(file explorer.html explorer.js explorer.css report.js report.css report.hash)
  string(REPLACE "." "_" name ${file})
  file(READ ${BUNDLE}/${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND text
    "extern const char orrery_${name}[];\n"
    "extern const unsigned long orrery_${name}_size;\n"
    "const char orrery_${name}[] = {${bytes}0};\n"
    "const unsigned long orrery_${name}_size = ${size};\n")
endforeach()
file(WRITE ${INTO} "${text}")
