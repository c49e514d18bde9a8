# Compiles headers of sim/ alone and twice over: each must bring all that it needs. Those with a
# source of their own are left out, as that source includes them first (include_table_test.cpp).
# There is nothing to run; a header that fails stops the build.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
     ${PROJECT_SOURCE_DIR}/sim/*.hpp)
set(sources "")
foreach(header ${headers})
  string(REGEX REPLACE "\\.hpp$" ".cpp" own_source ${header})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${own_source})
    continue()
  endif()
  string(REPLACE "/" "_" source "${header}.cpp")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${source})
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND sources ${source})
endforeach()
add_library(headers_alone OBJECT ${sources})
# Nothing of it is ever run, so nothing is optimised.
target_compile_options(headers_alone PRIVATE -O0 ${orrery_little_collection})
target_include_directories(headers_alone PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(headers_alone PRIVATE orrery_flags nlohmann_json::nlohmann_json
                      Boost::headers PkgConfig::SIMGRID)
