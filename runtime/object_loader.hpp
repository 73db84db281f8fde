// Loads relocatable objects (ELF64 of x86-64 and of 64-bit Arm as LLVM writes them: position independent, small code
// model) into this process. Several objects share one mapping with three parts: text and call stubs (read, execute),
// read-only data and the global offset table (read), data (read, write). No page is ever both writable and executable.
// Undefined symbols resolve only to functions on a list. Objects may come from files, so every read is bounds-checked.
// Throws error{corrupted} for a damaged object and error{unsupported}, naming the feature, for one that this loader
// cannot load. Immutable once loaded; find() may be called from any thread. The mapping lives as long as the image.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class code_image {
 public:
  // Returns the address of an external function, or null if kernels may not call it.
  using external_symbols = std::function<const void*(std::string_view name)>;

  code_image() = default;
  // Each object has its own symbols; equal names in two objects do not conflict. The bytes are not needed after the
  // call.
  code_image(std::span<const std::span<const std::byte>> objects,
             const external_symbols& externals);  // see find_host_symbol
  ~code_image();
  code_image(code_image&& other) noexcept;
  code_image& operator=(code_image&& other) noexcept;

  // Returns the global function `symbol` of object number `object`. Throws error{corrupted} if there is none.
  const void* find(std::size_t object, std::string_view symbol) const;

  std::span<const std::byte> mapping() const { return {mapping_, mapped_bytes_}; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::map<std::string, const void*, std::less<>>> functions_;  // per object
};

}  // namespace kiln
