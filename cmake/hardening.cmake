# Protections of what is shipped (presets release and portable): a fault in our code should end the process rather than be used. They
# change neither results nor the code that Kiln generates, so they are no part of the digests of code_digests.cmake, which sees the
# options of kiln_options only. docs/trust.md has the measured cost.
option(KILN_HARDENING "Stack protectors, checked standard library, control-flow protection, read-only relocations" OFF)
if(KILN_HARDENING)
  add_compile_options(-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  endif()
  add_link_options(LINKER:-z,relro LINKER:-z,now)
endif()
