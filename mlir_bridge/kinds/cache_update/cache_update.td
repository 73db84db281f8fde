def Kiln_CacheUpdateOp : Kiln_Operation<"cache_update"> {
  let summary = "The cache with `rows` written along `axis`, from `positions` on.";
  let arguments = (ins AnyRankedTensor:$cache, AnyRankedTensor:$rows, AnyRankedTensor:$positions, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}
