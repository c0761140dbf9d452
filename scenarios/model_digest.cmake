# FOLDER's sim/ and models/ in, a quoted digest of their sources in OUTPUT out.
file(GLOB_RECURSE sources RELATIVE ${FOLDER}
  ${FOLDER}/sim/*.h ${FOLDER}/sim/*.cpp ${FOLDER}/models/*.h ${FOLDER}/models/*.cpp)
list(SORT sources)
set(digests "")
foreach(source IN LISTS sources)
  file(SHA256 ${FOLDER}/${source} digest)
  string(APPEND digests "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT} "\"${digest}\"\n")
