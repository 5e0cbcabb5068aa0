mooring test .
