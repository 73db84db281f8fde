// The key of a cache entry: everything that its bytes depend on. It contains no paths, times or pointers, so two
// machines that would compile the same bytes compute the same key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/hash.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln {

// A key as (name, value) texts in a fixed order. They are stored in the entry and compared by `kiln cache explain`.
using key_fields = std::vector<std::pair<std::string, std::string>>;

struct kernel_key {
  std::string payload;                 // hex content hash of the portable kernel
  std::vector<shape> inputs, outputs;  // static
  kernel_configuration configuration;  // empty: the default one
  std::string target;                  // the target's whole description, not only its name
  std::string code;                    // what compiles: compiler_code() of jit/code_digest.hpp
  std::string llvm;                    // version of LLVM
  std::string driver;                  // the driver or assembler that made the bytes of the compiler's text, else empty
  std::string constants;               // prepared weights: what they were packed from; kernels: empty

  key_fields fields() const;
  content_hash hash() const;
};

// The hash of the fields, each name and value prefixed with its length.
content_hash hash_of(const key_fields& fields);
// The value of the field called `name`, or "" if there is none.
std::string_view field(const key_fields& fields, std::string_view name);

}  // namespace kiln
