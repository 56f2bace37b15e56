# Its target comes from libraries.cmake.
if(TARGET CURL::libcurl)
  set(CURL_FOUND TRUE)
  set(CURL_VERSION_STRING 7.88.1)
  set(CURL_VERSION 7.88.1)
endif()
